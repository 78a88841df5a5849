"""The other domains: events, bugs, measurements, weather, flights, dates.

Enters: nothing. Leaves: plain data read by `records.py`.  Cost: none.
"""

# ruff: noqa: E501 - a template is one line of data

from __future__ import annotations

from training import values as v
from training.tasks.domain import CITY, DATE, MONEY, PERSON, TIME, Domain, ListSlot, names, s

EVENTS = Domain(
    slots={
        "title": s(v.string(v.event_name), "title event name event_name", "event_title"),
        "date": s(DATE, "date day event_date", "on_date"),
        "time": s(TIME, "time start_time start", "time_of_day"),
        "end": s(TIME, "end end_time", "end_at"),
        "place": s(v.string(v.venue), "place location venue", "event_venue"),
        "city": s(CITY, "city town", "event_city"),
        "host": s(PERSON, "host organizer speaker", "host_name"),
        "guests": ListSlot(
            {"name": s(v.string(lambda r, p: (n := v.first_name(r, p), n)), "name")},
            names("guests attendees participants people"),
            ("{name}",),
            names("guest_list"),
        ),
        "seats": s(v.Kind(v.INTEGER, v.count_number(5, 900)), "seats capacity", "seat_count"),
    },
    train=(
        "(schedule|plan|book|add|set up|create) (a|an|the) {title} (on|for) {date}[ at {time}][ in {place}][ with {guests}]",
        "[the ]{title} (is|takes place|will be|happens) on {date}[ at {time}][ in {city}]",
        "{title}, {date}, {time}[, {place}][, {city}]",
        "(invite|remind|tell) {guests} (to|of|about) the {title} on {date}[ at {time}]",
        "(join us|come) (for|to) the {title} (in|at) {place}[ in {city}] on {date}[ at {time}]",
        "{host} (hosts|organizes|is hosting|is organizing|holds|gives) (a|an|the) {title} on {date}[ in {city}]",
        "on {date}[ at {time}] (there is|we have) (a|an|the) {title}[ at {place}][ with {guests}]",
        "event: {title}; date: {date}[; time: {time}][; place: {place}]",
        "[there will be ](a|an) {title} in {city} on {date}[, (starting|starts) at {time}]",
        "{title} with {guests} (at|from) {time}[ on {date}][ in {place}]",
        "from {time} to {end} on {date}: {title}[ in {place}]",
        "{title} on {date} from {time} (to|until) {end}",
        "[please ](put|note|enter) (a|the) {title} (in|into) the calendar: {date}[, {time}][, {place}]",
        "{title}: {date}[ {time}][, with {guests}]",
        "(our|the next|the) {title} (starts|begins|opens) (on|at) {date}[ at {time}][ in {city}]",
        "{guests} (are invited to|attend|join|meet for|visit) the {title} on {date}[ in {city}]",
        "(we|they) (meet|gather) for (a|the) {title} on {date}[ at {time}][ in {place}][ in {city}]",
        "{date}, {time}: {title}[ (at|in) {place}]",
        "[the ]{title} with {host}[ (starts|begins) at {time}][ on {date}]",
        "{title} in {city}, {date}[, host {host}]",
        "{guests} (go to|are at|came to|visit|plan) (a|the) {title} (in|at) {city}[ on {date}]",
        "with {guests}: {title} on {date}[ at {time}]",
        "tell {guests} that the {title} is (on|moved to) {date}[ at {time}]",
        "add {guests} to the {title} (on|of) {date}[ in {city}]",
        "(the|a|our) {title} (takes place|is held|happens|is) (at|in) {place} in {city}[ on {date}][ at {time}]",
        "{place} in {city} (hosts|has|invites to) (a|the) {title} on {date}",
        "(a|the) {title} (led|given|run) by {host}[ on {date}][ at {time}][ in {city}]",
        "{host} (opens|leads|runs) the {title} at {time}[ on {date}]",
        "(see|visit) the {title} at {place}, {city}[, {date}]",
    ),
    test=(
        "put the {title} on {date} at {time} with {guests}",
        "we have a {title} at {place} in {city} on {date}",
        "the {title} by {host} starts at {time} on {date}",
        "{guests} will come to the {title} in {city} on {date}",
    ),
    clauses={
        "seats": (
            ("{seats} seats", "capacity: {seats}", "room for {seats} people", "there are {seats} seats"),
            ("we have {seats} seats",),
        ),
        "host": (
            ("(hosted|organized) by {host}", "host: {host}", "the (host|speaker|organizer) is {host}"),
            ("host is {host}",),
        ),
        "place": (("location: {place}", "[the ]venue is {place}", "we meet in {place}"), ("place: {place}",)),
        "end": (("ends at {end}", "until {end}", "[the ]end is {end}"), ("it ends at {end}",)),
        "guests": (
            ("(guests|participants|attendees): {guests}", "{guests} (will come|are invited|will attend)"),
            ("invited are {guests}",),
        ),
    },
)

BUGS = Domain(
    slots={
        "title": s(v.string(v.bug_title), "title summary problem issue", "bug_title"),
        "component": s(v.string(v.from_pool("component")), "component module area", "component_name"),
        "severity": s(
            v.enum(
                {
                    "low": ("minor",),
                    "medium": ("moderate",),
                    "high": ("serious",),
                    "critical": ("urgent", "blocking"),
                }
            ),
            "severity priority",
            "bug_severity",
        ),
        "version": s(v.string(v.version), "version app_version release", "version_number"),
        "os": s(
            v.enum({"Windows": (), "macOS": ("Mac",), "Linux": (), "Android": (), "iOS": ("iPhone",)}),
            "os platform system",
            "operating_system",
        ),
        "reporter": s(PERSON, "reporter reported_by user", "reporter_name"),
        "date": s(DATE, "date reported_on", "report_date"),
        "reproducible": s(
            v.Kind(
                v.BOOLEAN,
                lambda r, _s: r.choice(
                    (
                        (True, "always happens"),
                        (True, "happens every time"),
                        (True, "reproducible"),
                        (True, "can be reproduced"),
                        (False, "happened once"),
                        (False, "not reproducible"),
                        (False, "cannot be reproduced"),
                    )
                ),
            ),
            "reproducible",
            "is_reproducible",
        ),
    },
    train=(
        "[the ]{title} (on|in|with|since|after updating to) version {version}[ on {os}]",
        "(bug|issue|bug report|problem|defect): {title}[ in {version}][ on {os}]",
        "{reporter} (reports|says|found|noticed) that the {title}[ on {os}]",
        "on {os}[ with version {version}] the {title}",
        "{title}, (severity|priority) {severity}[, version {version}]",
        "(a|we have a|there is a) {severity} (bug|issue|problem): {title}[, reported by {reporter}]",
        "[{severity} ](bug|issue) in the {component} (of|in) version {version}[, {os}]",
        "(after the update to|since) {version} the {title}[ on {os}]",
        "the {component} (is broken|does not work|has a bug) on {os}[, version {version}]",
        "{severity}: {title} ({os}[, {version}])",
        "user {reporter} (on|using) {os} (says|reports): {title}",
        "[please ](fix|check|look at|report): {title}[ on {os}][ in {version}]",
        "I (see|found|have) a {severity} (bug|problem|issue): {title}[ on {os}]",
        "(when using|with|using) {os}[ {version}], the {title}",
        "{title}; {os}[; version {version}][; {severity}]",
        "{reporter} (sees|saw|had|has) (a problem|an issue|a bug) (with|in) version {version}: {title}",
        "version {version}: {title}[ ({severity})][ on {os}]",
        "(file|open|create) a (ticket|report): {title}[, {severity}][, {os}]",
    ),
    test=(
        "please file a {severity} bug: {title} in version {version}",
        "{reporter} found a problem on {os}: {title}",
        "in version {version} on {os}, the {title}",
        "the {title} on {os}; {severity} bug",
    ),
    clauses={
        "reporter": (
            ("(reported|found|filed) by {reporter}", "reporter: {reporter}"),
            ("reported by user {reporter}",),
        ),
        "severity": (
            ("(severity|priority): {severity}", "this is {severity}", "it is a {severity} (issue|bug)"),
            ("severity is {severity}",),
        ),
        "version": (
            ("version {version}", "app version {version}", "release {version}"),
            ("it is version {version}",),
        ),
        "os": (("on {os}", "(platform|system|os): {os}", "running {os}"), ("I use {os}",)),
        "date": (("reported on {date}", "date: {date}", "found on {date}"), ("first seen on {date}",)),
        "reproducible": (
            ("it {reproducible}", "{reproducible}", "this {reproducible}"),
            ("bug {reproducible}",),
        ),
    },
)

MEASUREMENTS = Domain(
    slots={
        "quantity": s(
            v.string(v.from_pool("quantity")), "quantity property parameter measure", "measured_quantity"
        ),
        "value": s(v.Kind(v.NUMBER, v.measured), "value reading result", "measured_value"),
        "unit": s(
            v.string(
                lambda r, _s: (
                    u := r.choice(
                        [
                            "C",
                            "F",
                            "K",
                            "bar",
                            "Pa",
                            "hPa",
                            "V",
                            "A",
                            "W",
                            "kW",
                            "m",
                            "cm",
                            "mm",
                            "km",
                            "kg",
                            "g",
                            "t",
                            "l",
                            "ml",
                            "Hz",
                            "kHz",
                            "lux",
                            "N",
                            "%",
                            "ppm",
                            "dB",
                            "psi",
                            "rpm",
                            "m/s",
                            "km/h",
                        ]
                    ),
                    u,
                )
            ),
            "unit units",
            "unit_name",
        ),
        "sensor": s(
            v.string(v.code(("S", "T", "PT", "sensor", "probe"))),
            "sensor sensor_id device probe",
            "device_id",
        ),
        "date": s(DATE, "date day measured_on", "measurement_date"),
        "time": s(TIME, "time at", "measured_at"),
        "place": s(v.string(v.venue), "place location room site", "sensor_location"),
        "operator": s(PERSON, "operator technician measured_by", "operator_name"),
    },
    train=(
        "[the ]{quantity} (is|was|reads|measured|reached) {value} {unit}[ (in|at) {place}][ at {time}]",
        "[sensor ]{sensor} (measured|reads|recorded|shows|reported|logged) (a|an) {quantity} of {value} {unit}[ at {time}][ on {date}]",
        "{quantity}: {value} {unit}[, sensor {sensor}][, {date}]",
        "{operator} (measured|recorded|noted|found) (a|an|the) {quantity} of {value} {unit}[ at {time}]",
        "on {date}[ at {time}] (the|a) {quantity} of {value} {unit} was (measured|recorded)[ by {sensor}]",
        "(reading from|device) {sensor}: {quantity} {value} {unit}[ at {time}]",
        "{value} {unit} {quantity}[ (in|at) {place}][ at {time}]",
        "(at|in) {place} the {quantity} (is|was) {value} {unit}[ on {date}]",
        "(we|I) (measured|recorded) {value} {unit} of {quantity}[ with {sensor}][ on {date}]",
        "{sensor}; {quantity}; {value}; {unit}[; {date}]",
        "(note|store|save|write down) {quantity} {value} {unit}[ from {sensor}][ on {date}]",
        "{sensor} (at|on) {time}: {quantity} {value} {unit}",
        "{operator} (read|saw|noticed|logs) {quantity} of {value} {unit}[ on {date}]",
        "(in|at) {place}, {sensor} (shows|showed|measures) {quantity} {value} {unit}[ at {time}]",
        "{value} {unit} was the {quantity}[ (in|at) {place}][ on {date}]",
        "a {quantity} of {value} {unit}[ was found][ by {operator}][ at {time}]",
    ),
    test=(
        "at {time} the sensor {sensor} recorded a {quantity} of {value} {unit}",
        "log a {quantity} of {value} {unit} from {sensor} on {date}",
        "the {quantity} in {place} was {value} {unit} at {time}",
        "{operator} reads {quantity} {value} {unit} on {date}",
    ),
    clauses={
        "operator": (
            ("(measured|recorded) by {operator}", "operator: {operator}"),
            ("operator is {operator}",),
        ),
        "sensor": (
            ("sensor {sensor}", "sensor: {sensor}", "from device {sensor}"),
            ("the sensor is {sensor}",),
        ),
        "date": (("date: {date}", "on {date}", "measured on {date}"), ("recorded on {date}",)),
        "time": (("at {time}", "time: {time}"), ("it was {time}",)),
    },
)

WEATHER = Domain(
    slots={
        "city": s(CITY, "city location place", "city_name"),
        "condition": s(v.string(v.from_pool("condition")), "condition weather sky", "weather_condition"),
        "temperature": s(
            v.Kind(v.NUMBER, v.count_number(-25, 45)), "temperature temp degrees", "temperature_c"
        ),
        "humidity": s(
            v.Kind(v.INTEGER, v.count_number(10, 100)), "humidity humidity_percent", "relative_humidity"
        ),
        "wind": s(v.Kind(v.NUMBER, v.count_number(1, 99)), "wind wind_speed", "wind_kmh"),
        "date": s(DATE, "date day", "forecast_date"),
        "high": s(v.Kind(v.INTEGER, v.count_number(11, 45)), "high max", "max_temp"),
        "low": s(v.Kind(v.INTEGER, v.count_number(-20, 10)), "low min", "min_temp"),
    },
    train=(
        "(it is|it was|it will be) {condition}[ and {temperature} degrees] in {city}[ on {date}]",
        "{city}: {condition}[, {temperature} (degrees|C)][, wind {wind} km/h][, humidity {humidity}%]",
        "[the ]weather in {city} (is|was|will be) {condition}[ with {temperature} degrees][ on {date}]",
        "(expect|forecast:|we expect) {condition} (weather|skies) in {city}[ on {date}][ with {temperature} degrees]",
        "in {city} it (is|was) {temperature} degrees[ and {condition}][ with {wind} km/h wind]",
        "{temperature} degrees[ and {condition}] in {city}[, humidity {humidity} percent]",
        "on {date} {city} (had|has|will have|sees|will see) {condition} (weather|skies)[, {temperature} degrees]",
        "{city} (reports|reported) {temperature} C[, {condition}], (humidity|humidity of) {humidity}%",
        "(today|tomorrow) in {city}: high {high}, low {low}[, {condition}]",
        "(report|weather|today): {city}, {condition}[, {temperature} degrees][, wind {wind} km/h]",
        "{city} (is|was|stays|gets) {condition}[ on {date}][ with {temperature} (degrees|C)]",
        "(we had|they have|there are) {temperature} degrees in {city}[, {condition}]",
        "{condition} in {city}[, {temperature} degrees][ on {date}][, humidity {humidity}%]",
        "[the ]forecast (says|is) {condition} for {city}[ on {date}][, {temperature} degrees]",
        "{date}: {city} {condition}[, {temperature} degrees][, wind {wind} km/h]",
    ),
    test=(
        "weather report for {city}: {condition}, {temperature} degrees, wind {wind} km/h",
        "{city} will be {condition} on {date} with {temperature} degrees",
        "we have {temperature} degrees in {city} and it is {condition}",
        "forecast for {city} on {date}: {condition}, humidity {humidity}%",
    ),
    clauses={
        "humidity": (
            ("humidity {humidity}%", "the humidity is {humidity} percent", "humidity: {humidity}%"),
            ("humidity of {humidity} percent",),
        ),
        "wind": (
            ("wind {wind} km/h", "winds of {wind} km/h", "the wind [speed ]is {wind} km/h"),
            ("wind at {wind} km/h",),
        ),
        "high": (
            ("high of {high}", "[a ]max of {high} degrees", "up to {high} degrees"),
            ("the high is {high}",),
        ),
        "low": (("low of {low}", "[a ]min of {low} degrees", "down to {low} degrees"), ("the low is {low}",)),
    },
)

FLIGHTS = Domain(
    slots={
        "origin": s(CITY, "origin from departure_city from_city", "origin_city"),
        "destination": s(CITY, "destination to arrival_city to_city", "destination_city"),
        "date": s(DATE, "date departure_date day", "travel_date"),
        "time": s(TIME, "time departure_time departs", "departure_at"),
        "number": s(v.string(v.code(("LH", "BA", "AF", "FR"))), "flight flight_number number", "flight_no"),
        "airline": s(v.string(v.from_pool("airline")), "airline carrier", "airline_name"),
        "passengers": s(
            v.Kind(v.INTEGER, lambda r, _s: (n := r.randint(1, 9), v.counted(n, r))),
            "passengers travelers seats",
            "passenger_count",
        ),
        "cabin": s(v.enum({"economy": (), "business": (), "first": ()}), "class cabin", "cabin_class"),
        "name": s(PERSON, "passenger name traveler", "passenger_name"),
        "price": s(MONEY, "price fare cost", "ticket_price"),
    },
    train=(
        "(book|find|I need|reserve|search) (a flight|flights|a ticket) from {origin} to {destination}[ on {date}][ for {passengers} (people|passengers|persons)]",
        "[flight ]{number} (from|leaves) {origin} (to|for) {destination}[ on {date}][ at {time}]",
        "{name} (flies|is flying|travels|wants to fly|will fly) from {origin} to {destination}[ on {date}][ with {airline}]",
        "{origin} to {destination}[, {date}][, {passengers} (passengers|people)][, {cabin} class]",
        "{airline} [flight ]{number} from {origin} to {destination}[ (departs|leaves) at {time}]",
        "(fly|flying) (to|into) {destination} from {origin}[ on {date}][ at {time}]",
        "(I want|we want|we would like) to (fly|go|travel) from {origin} to {destination}[ on {date}][ in {cabin} class]",
        "from: {origin}; to: {destination}[; date: {date}][; airline: {airline}]",
        "{passengers} tickets to {destination} from {origin}[, {date}][, {cabin}]",
        "a {cabin} class (seat|ticket) from {origin} to {destination}[ for {name}][ on {date}]",
        "[the ]ticket of {name} from {origin} to {destination} costs {price}",
        "(get|reserve|buy|order) {passengers} (tickets|flights|places) from {origin} to {destination}[ (on|for) {date}]",
        "{name} (goes|has a flight|books a flight|has a ticket) from {origin} to {destination}[ on {date}][ at {time}]",
        "[please ](send|bring|take) {name} from {origin} to {destination}[ on {date}][ with {airline}]",
        "{date}: {origin} to {destination}[, flight {number}][, {time}]",
        "(to|into) {destination} from {origin}[ with {airline}][ on {date}]",
        "{number}, {origin} - {destination}[, {date}][, {time}]",
        "[on {date} ](I|we) (travel|go|fly) from {origin} to {destination}[ with {airline}]",
    ),
    test=(
        "book {passengers} seats from {origin} to {destination} on {date}",
        "{name} needs a {cabin} class flight from {origin} to {destination} on {date}",
        "on {date} flight {number} goes from {origin} to {destination} at {time}",
        "I would like to go to {destination} from {origin} with {airline}",
    ),
    clauses={
        "airline": (
            ("with {airline}", "airline: {airline}", "operated by {airline}"),
            ("the airline is {airline}",),
        ),
        "cabin": (("{cabin} class", "in {cabin}", "class: {cabin}"), ("{cabin} class please",)),
        "price": (
            ("price {price}", "the fare is {price}", "it costs {price}", "ticket price: {price}"),
            ("the price is {price}",),
        ),
        "name": (("passenger: {name}", "for {name}", "passenger {name}"), ("the passenger is {name}",)),
        "time": (("departure at {time}", "departs {time}", "leaving at {time}"), ("it leaves at {time}",)),
    },
)

DATES = Domain(
    slots={
        "name": s(PERSON, "name person employee", "employee_name"),
        "start": s(DATE, "start start_date from begins", "starts_on"),
        "end": s(DATE, "end end_date until to", "ends_on"),
        "what": s(
            v.string(
                lambda r, p: (
                    w := r.choice(
                        [
                            "contract",
                            "project",
                            "lease",
                            "course",
                            "rental",
                            "insurance",
                            "subscription",
                            "internship",
                            "visa",
                            "license",
                            "trial",
                            "loan",
                        ]
                    ),
                    w,
                )
            ),
            "what subject item",
            "subject_name",
        ),
    },
    train=(
        "{name} is (away|on leave|on vacation|absent|on holiday) from {start} (to|until|till) {end}",
        "the {what} [of {name} ](starts|begins|runs from) {start} and (ends|expires|stops) [on ]{end}",
        "(vacation|leave|absence) for {name}: {start} (to|until|-) {end}",
        "{what} from {start} (to|until) {end}[ for {name}]",
        "start {start}, end {end}[, {what}]",
        "the {what} (begins|starts) on {start}",
        "the {what} (ends|expires) on {end}",
        "between {start} and {end} {name} (is away|is on leave)",
        "{name} (takes leave|is out|is not here|travels) (from|between) {start} (to|and|until) {end}",
        "(a|the) {what} (of|for) {name}: {start} to {end}",
        "{what}, {start} - {end}[, {name}]",
        "[the ]{what} (lasts|goes|is valid) from {start} (to|until) {end}",
        "[the ]{what} is over on {end}[ and began on {start}]",
    ),
    test=(
        "{name} will be on leave from {start} until {end}",
        "the {what} runs from {start} to {end}",
        "a {what} for {name} begins {start} and ends {end}",
    ),
    clauses={
        "end": (("until {end}", "it ends on {end}", "end date: {end}"), ("the end is {end}",)),
        "start": (("from {start}", "it starts on {start}", "start date: {start}"), ("the start is {start}",)),
        "name": (("for {name}", "employee: {name}"), ("this is for {name}",)),
    },
)
