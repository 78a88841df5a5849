import sys, time, random, collections
from fuzz.targets import TARGETS, Wrong
from fuzz.seeds import corpus
from fuzz.__main__ import mutated, words_of

pool = corpus("holes")
print(len(pool))
bad = collections.Counter()
T = time.time()
n = 0


def go(d):
    global n
    n += 1
    t = time.process_time()
    try:
        TARGETS["holes"](d)
    except Wrong as e:
        print(d[:300])
        print("   ", str(e)[:300], flush=True)
        bad[str(e)[:20]] += 1
    except Exception as e:
        print(d[:300])
        print("   !!", type(e).__name__, str(e)[:300], flush=True)
        bad[type(e).__name__] += 1
    t = time.process_time() - t
    if t > 3:
        print("slow", round(t, 1), d[:200], flush=True)


for d in pool:
    go(d)
print("corpus done", time.time() - T, bad)
r = random.Random(int(sys.argv[1]))
while time.time() - T < float(sys.argv[2]):
    d = pool[r.randrange(len(pool))]
    go(bytes([d[0], r.randrange(256)]) + d[2:] if r.random() < 0.5 else mutated(pool, words_of("holes"), r))
print(n, bad)
