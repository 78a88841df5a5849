"""Tool calls: choose one tool from the list in the schema and fill its arguments.

Enters: a random generator and the split. Leaves: an example whose schema is a
choice of `{"name": const, "arguments": {...}}` objects.  Cost: microseconds.

Templates are divided between the splits; a tool's name and its arguments' names
vary, so that the model has to read the list rather than recall it.
"""

# ruff: noqa: E501 - a template is one line of data

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from training import templates
from training import values as v
from training.tasks.example import Example, object_schema
from training.tasks.records import case_style, cased

_CITY = v.string(v.city)
_PERSON = v.string(v.person)
_DATE = v.Kind(v.DATE, v.date)
_TIME = v.Kind(v.TIME, v.clock)
_TOPIC = v.string(v.phrase)
_MONEY = v.Kind(v.NUMBER, v.money)
_CURRENCY = v.Kind(
    {"type": "string", "enum": ["EUR", "USD", "GBP", "JPY"]},
    v.one_of({"EUR": ("euros",), "USD": ("dollars",), "GBP": ("pounds",), "JPY": ("yen",)}),
)
_MINUTES = v.Kind(v.INTEGER, v.count_number(1, 90))
_LEVEL = v.Kind(v.INTEGER, v.count_number(0, 99))
_ROOM = v.string(
    lambda r, _s: (
        p := r.choice(
            ("kitchen", "bedroom", "living room", "hallway", "bathroom", "garage", "office", "garden")
        ),
        p,
    )
)
_LANGUAGE = v.string(
    lambda r, _s: (
        p := r.choice(
            [
                "French",
                "German",
                "Spanish",
                "Italian",
                "Polish",
                "Turkish",
                "Japanese",
                "Dutch",
                "Greek",
                "Czech",
                "Danish",
                "Korean",
            ]
        ),
        p,
    )
)


@dataclass(frozen=True)
class Tool:
    names: tuple[str, ...]
    arguments: dict[str, tuple[v.Kind, tuple[str, ...]]]
    train: tuple[str, ...]
    test: tuple[str, ...]


def _a(kind: v.Kind, names: str) -> tuple[v.Kind, tuple[str, ...]]:
    return kind, tuple(names.split())


TOOLS: tuple[Tool, ...] = (
    Tool(
        ("get_weather", "weather", "weather_forecast"),
        {"city": _a(_CITY, "city location place"), "date": _a(_DATE, "date day")},
        (
            "(what is|how is|tell me|show|get) the weather [like ]in {city}[ on {date}]",
            "(will it rain|is it raining|is it sunny|is it cold) in {city}[ on {date}]",
            "(give me|show me|I need) (a|the) (forecast|weather report) (of|for) {city}[ on {date}]",
            "[the ]weather of {city}[ on {date}]",
            "how (cold|warm|sunny) will it be in {city}[ on {date}]",
            "is there (snow|sun|wind) in {city}[ on {date}]",
            "weather (for|in) {city}[ on {date}]",
            "(forecast|weather forecast) for {city}[, {date}]",
            "do I need an umbrella in {city}",
        ),
        (
            "how will the weather be in {city} on {date}",
            "give me the weather of {city}",
            "is there rain in {city} on {date}",
        ),
    ),
    Tool(
        ("send_email", "email", "send_mail"),
        {"to": _a(v.Kind(v.EMAIL, v.email), "to recipient address"), "subject": _a(_TOPIC, "subject title")},
        (
            "(send|write) (an|a new) (email|mail) to {to}[ about {subject}]",
            "(email|mail) {to}[ about {subject}]",
            "(email|mail) {to} with subject {subject}",
            "(write|send a message) to {to}[ with the subject {subject}]",
        ),
        ("please email {to} about {subject}", "I want to send a mail to {to} about {subject}"),
    ),
    Tool(
        ("set_alarm", "alarm", "create_alarm"),
        {"time": _a(_TIME, "time at")},
        (
            "(change|move|put) (my|the|our) alarm (to|at|for) {time}",
            "alarm (to|for|on) {time}",
            "wake (them|him|her|everyone|me) at {time}",
            "(set|have) (the|our|an) alarm (to|at|for) {time}",
            "(set|create|add) an alarm (for|at) {time}",
            "wake me [up ]at {time}",
            "alarm at {time}",
            "I (want|need|have) to (wake|get) up at {time}",
        ),
        ("please set my alarm to {time}", "wake us up at {time}"),
    ),
    Tool(
        ("set_timer", "timer", "start_timer"),
        {"minutes": _a(_MINUTES, "minutes duration")},
        (
            "[a ]{minutes} minute (timer|countdown)[ now]",
            "(set|make|run|give me) a timer with {minutes} minutes",
            "(begin|set|create|run) [a ]{minutes} minute (timer|countdown)",
            "(set|start|create) a timer (for|of) {minutes} minutes",
            "timer {minutes} minutes",
            "(start|begin) a countdown of {minutes} minutes",
            "count down {minutes} minutes",
        ),
        ("please start a {minutes} minute timer", "give me a timer for {minutes} minutes"),
    ),
    Tool(
        ("create_event", "add_event", "calendar_add", "schedule_meeting"),
        {
            "title": _a(v.string(v.event_name), "title event name"),
            "date": _a(_DATE, "date day"),
            "time": _a(_TIME, "time start"),
        },
        (
            "(schedule|add|create|plan|book) (a|the) {title} on {date}[ at {time}]",
            "put (a|the) {title} (in|on) my calendar (on|for) {date}[ at {time}]",
            "(there is|I have) a {title} on {date}[ at {time}], (add it|note it|save it)",
            "calendar: {title}, {date}[, {time}]",
        ),
        ("please plan a {title} for {date} at {time}", "add the {title} on {date} to my calendar"),
    ),
    Tool(
        ("play_music", "play_song", "play"),
        {"song": _a(_TOPIC, "song title track"), "artist": _a(_PERSON, "artist by")},
        (
            "play {song}[ by {artist}]",
            "(put on|start|I want to hear|play the song) {song}[ (by|from) {artist}]",
            "(listen to|play) the (song|track) {song}[ by {artist}]",
        ),
        ("please play the song {song} by {artist}", "I would like to hear {song} by {artist}"),
    ),
    Tool(
        ("translate", "translate_text"),
        {"text": _a(_TOPIC, "text phrase"), "language": _a(_LANGUAGE, "language to target")},
        (
            "translate {text} (to|into) {language}",
            "(how do you say|what is|say) {text} in {language}",
            "(give me|I need) {text} in {language}",
        ),
        ("please translate {text} into {language}", "how would you say {text} in {language}"),
    ),
    Tool(
        ("convert_currency", "exchange", "currency_convert"),
        {
            "amount": _a(_MONEY, "amount value"),
            "from": _a(_CURRENCY, "from source"),
            "to": _a(_CURRENCY, "to target"),
        },
        (
            "(convert|change|exchange) {amount} {from} (to|into) {to}",
            "how (much|many {to}) is {amount} {from}[ in {to}]",
            "{amount} {from} in {to}",
            "what is {amount} {from} in {to}",
        ),
        ("please convert {amount} {from} into {to}", "how much are {amount} {from} in {to}"),
    ),
    Tool(
        ("search_flights", "find_flight", "book_flight"),
        {
            "origin": _a(_CITY, "origin from"),
            "destination": _a(_CITY, "destination to"),
            "date": _a(_DATE, "date day"),
        },
        (
            "(find|search|book|look for) (a flight|flights) from {origin} to {destination}[ on {date}]",
            "(fly|flights) from {origin} to {destination}[ on {date}]",
            "I (want|need|have) to fly from {origin} to {destination}[ on {date}]",
        ),
        (
            "show flights from {origin} to {destination} on {date}",
            "I would like to fly from {origin} to {destination}",
        ),
    ),
    Tool(
        ("book_hotel", "find_hotel", "reserve_room"),
        {
            "city": _a(_CITY, "city location"),
            "date": _a(_DATE, "date check_in"),
            "nights": _a(v.Kind(v.INTEGER, v.count_number(1, 20)), "nights"),
        },
        (
            "(get|I would like) a hotel[ room] in {city}[ for {nights} nights][ on {date}]",
            "{nights} nights in a hotel in {city}[ from {date}]",
            "(reserve|find) (us|me) a (hotel|room) in {city}[ on {date}]",
            "(book|find|reserve) a (hotel|room|hotel room) in {city}[ (on|from) {date}][ for {nights} nights]",
            "(hotel|room) in {city}[ for {nights} nights][ from {date}]",
            "I (want|need) a (hotel|place to stay) in {city}[ for {nights} nights]",
        ),
        ("please reserve a hotel in {city} for {nights} nights", "I need a hotel room in {city} on {date}"),
    ),
    Tool(
        ("set_light", "lights", "dim_light"),
        {"room": _a(_ROOM, "room place"), "level": _a(_LEVEL, "level brightness")},
        (
            "(set|dim|turn) the (light|lights|lamp) in the {room} to {level}[ percent]",
            "{room} (light|lights) (to|at) {level}[ percent]",
            "(make|set) the {room} light {level} percent",
        ),
        ("please dim the {room} lights to {level} percent", "put the light in the {room} at {level}"),
    ),
    Tool(
        ("set_temperature", "thermostat", "heating"),
        {
            "room": _a(_ROOM, "room place"),
            "degrees": _a(v.Kind(v.NUMBER, v.count_number(10, 30)), "degrees temperature"),
        },
        (
            "(set|heat|warm) the {room} to {degrees} degrees",
            "(set|turn) the (heating|thermostat) in the {room} to {degrees}[ degrees]",
            "{room} (heating|thermostat) to {degrees} degrees",
            "(make it|I want) {degrees} degrees in the {room}",
        ),
        (
            "please heat the {room} to {degrees} degrees",
            "put the thermostat in the {room} at {degrees} degrees",
        ),
    ),
    Tool(
        ("search_web", "web_search", "search"),
        {"query": _a(_TOPIC, "query q text")},
        (
            "(search|look) [the web ]for {query}",
            "(google|find information about|look up|search) {query}",
            "what (do you know|can you find) about {query}",
        ),
        ("please search for {query}", "look on the web for {query}"),
    ),
    Tool(
        ("call_contact", "call", "phone_call"),
        {"name": _a(_PERSON, "name contact person")},
        (
            "make [me ]a call for {name}",
            "give (them|him|her) a call: {name}",
            "{name} (needs|gets) a call",
            "let us call {name}",
            "(call|phone|ring|dial) {name}",
            "(make|start) a [phone ]call to {name}",
            "I (want|need) to (call|speak to|talk to) {name}",
        ),
        ("please call {name}", "give {name} a call"),
    ),
    Tool(
        ("send_message", "text_message", "sms"),
        {"to": _a(_PERSON, "to name contact"), "text": _a(_TOPIC, "text message body")},
        (
            "(send|message) {to}: {text}",
            "(write|message) to {to}: {text}",
            "a message (to|for) {to}: {text}",
            "(tell|text|message) {to}[ that]: {text}",
            "send {to} (a message|a text|an sms): {text}",
            "(send|write) (a message|a text|an sms) to {to} saying {text}",
        ),
        ("please message {to}: {text}", "write {to} a message saying {text}"),
    ),
    Tool(
        ("transfer_money", "send_money", "pay"),
        {
            "to": _a(_PERSON, "to recipient name"),
            "amount": _a(_MONEY, "amount sum"),
            "currency": _a(_CURRENCY, "currency"),
        },
        (
            "(send|transfer|pay|wire) {amount} {currency} to {to}",
            "(pay|send) {to} {amount} {currency}",
            "{to} (gets|should get) {amount} {currency} from me",
        ),
        ("please transfer {amount} {currency} to {to}", "I want to pay {to} {amount} {currency}"),
    ),
    Tool(
        ("add_todo", "create_task", "add_task"),
        {"task": _a(_TOPIC, "task item title"), "due": _a(_DATE, "due date")},
        (
            "(add|save|note) (a|my|this) task: {task}[, due {due}]",
            "(add|create|note) the (todo|item) {task}[ (by|for|until) {due}]",
            "task {task}[ is] due {due}",
            "(add|put) {task} (to|on) my (todo list|list|tasks)[ (for|by|due) {due}]",
            "(new task|todo|create a task): {task}[, due {due}]",
            "remind me (to do|of|about) {task}[ (on|by) {due}]",
        ),
        ("please add the task {task} due {due}", "put {task} on my todo list by {due}"),
    ),
    Tool(
        ("get_stock_price", "stock_price", "stock"),
        {"company": _a(v.string(v.company), "company name")},
        (
            "(what is|show|get|tell me) the (stock|share) price of {company}",
            "how much (is|are) (one share|shares|the stock) of {company}",
            "(show|tell) me (shares|stocks) of {company}",
            "(stock|share) price (of|for) {company}",
            "how is the {company} stock [doing]",
        ),
        ("how much is a share of {company}", "give me the stock price of {company}"),
    ),
    Tool(
        ("find_restaurant", "restaurants", "book_table"),
        {
            "city": _a(_CITY, "city location"),
            "people": _a(v.Kind(v.INTEGER, v.count_number(1, 12)), "people guests"),
        },
        (
            "(find|book|reserve) a (restaurant|table) in {city}[ for {people} people]",
            "where can (I|we) eat in {city}",
            "(dinner|a table|lunch) for {people} in {city}",
            "restaurants in {city}",
        ),
        ("please book a table for {people} people in {city}", "find us a place to eat in {city}"),
    ),
    Tool(
        ("get_directions", "navigate", "route"),
        {"from": _a(_CITY, "from origin start"), "to": _a(_CITY, "to destination end")},
        (
            "(how do I get|directions|the way|route|drive|navigate) from {from} to {to}",
            "(navigate|drive|take me|bring me) to {to}[ from {from}]",
        ),
        ("show me the way from {from} to {to}", "give me directions from {from} to {to}"),
    ),
)


_OPENINGS = (
    "please ", "please ", "can you ", "could you ", "hey, ", "ok, ", "I want to ", "I would like to ", "now ",
    "we need to ", "hello, ", "you should ", "let us ", "assistant, ",
)  # fmt: skip


def _schema_of(
    tool: Tool, name: str, names: dict[str, str], kept: list[str], absent: set[str]
) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key in kept:
        schema = tool.arguments[key][0].schema
        if key in absent:
            schema = {**schema, "type": [schema["type"], "null"]}
            if "enum" in schema:
                schema["enum"] = [*schema["enum"], None]
        fields[names[key]] = schema
    return object_schema({"name": {"const": name}, "arguments": object_schema(fields)})


def write(rng: random.Random, split: str) -> Example:
    offered = rng.sample(TOOLS, rng.choices((1, 2, 3, 4, 5), (0.05, 0.25, 0.3, 0.25, 0.15))[0])
    right = offered[0]
    rng.shuffle(offered)
    style = case_style(rng)
    template = templates.choose(rng.choice(getattr(right, split)), rng)
    if split == "train" and rng.random() < 0.35:
        template = rng.choice(_OPENINGS) + template
    stated = templates.slots_of(template)
    drawn = {key: right.arguments[key][0].draw(rng, split) for key in dict.fromkeys(stated)}
    options: list[dict[str, Any]] = []
    answer: dict[str, Any] = {}
    for tool in offered:
        name = cased(rng.choice(tool.names), style)
        names = {k: cased(rng.choice(n), style) for k, (_, n) in tool.arguments.items()}
        if len(set(names.values())) < len(names):
            names = {k: cased(n[0], style) for k, (_, n) in tool.arguments.items()}
        if tool is right:
            kept = [k for k in tool.arguments if k in drawn or rng.random() < 0.3]
            absent = {k for k in kept if k not in drawn} | {k for k in kept if rng.random() < 0.08}
            answer = {
                "name": name,
                "arguments": {names[k]: drawn[k][0] if k in drawn else None for k in kept},
            }
        else:
            kept = [k for i, k in enumerate(tool.arguments) if i == 0 or rng.random() < 0.8]
            absent = {k for k in kept if rng.random() < 0.15}
        options.append(_schema_of(tool, name, names, kept, absent))
    if split == "train" and rng.random() < 0.25:
        firm = {key for key, (_, surface) in drawn.items() if surface[:1].isupper() or surface[:1].isdigit()}
        template = templates.disturb(template, rng, lambda: v.pick(rng, "word", split), firm)
    text = templates.fill(template, lambda key: drawn[key][1])
    text += (
        "?"
        if text.lower().startswith(("what", "how", "will", "is ", "do ", "where")) and rng.random() < 0.7
        else ""
    )
    if text[-1] != "?" and rng.random() < 0.2:
        text += rng.choice((".", ", please", ", thanks"))
    if rng.random() < 0.3:
        text = text[:1].lower() + text[1:]
    return Example("tools", text, options[0] if len(options) == 1 else {"anyOf": options}, answer)
