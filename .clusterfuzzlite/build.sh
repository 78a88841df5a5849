#!/bin/bash -eu
# The C++ core with the sanitizer and libFuzzer's counters that $CXXFLAGS asks for, then a target for every text
# that is read (fuzz/targets.py), with its seeds and kept inputs as $OUT/fuzz_NAME_seed_corpus.zip.
# `make cluster` runs this without the image.
cmake -S . -B build/cluster -G Ninja -DCMAKE_BUILD_TYPE=Release -DPython_EXECUTABLE="$(command -v python3)" \
  -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_CXX_FLAGS="$CXXFLAGS"
cmake --build build/cluster --target _core
cp build/cluster/_core*.so structgen/
for target in $(python3 -c "from fuzz.seeds import DICTIONARIES; print(*DICTIONARIES)"); do
  printf 'import sys\nfrom fuzz.__main__ import cluster\ncluster("%s", sys.argv)\n' "$target" > "fuzz_$target.py"
  compile_python_fuzzer "fuzz_$target.py" --add-data "structgen:structgen" --add-data "tests/cases:tests/cases" \
    --add-data "examples:examples" --add-data "grammars:grammars"
  python3 -m fuzz.pack "$target" "$OUT/fuzz_${target}_seed_corpus.zip"
done
