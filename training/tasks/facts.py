"""More of what people say in each domain: further fields, names of fields, sentences and clauses.

Enters: nothing. Leaves: `widened`, which adds these to a domain; training alone reads them, so the
test split keeps its sentences.  Cost: none.

A domain's own file has its core.  Here stand clauses that fit beside any of its sentences, so that
texts are composed rather than chosen.
"""

# ruff: noqa: E501 - a template is one line of data

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from training import values as v
from training.tasks.domain import DATE, MONEY, PERSON, TIME, Domain, ListSlot, Slot, names, s


@dataclass(frozen=True)
class More:
    slots: dict[str, Slot | ListSlot] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)  # further key names of slots
    train: tuple[str, ...] = ()
    clauses: dict[str, tuple[str, ...]] = field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    forms: dict[str, tuple[str, ...]] = field(default_factory=dict)  # further forms of a list's rows


def minutes(keys: str) -> Slot:
    return s(v.Kind(v.INTEGER, v.duration("minute")), keys)


def _count(low: int, high: int, keys: str) -> Slot:
    return s(v.Kind(v.INTEGER, v.count_number(low, high)), keys)


def _measure(low: int, high: int, keys: str) -> Slot:
    """A number with a decimal in two of three cases."""

    def draw(rng: random.Random, _split: str) -> v.Drawn:
        value: float = rng.randint(low, high)
        if rng.random() < 0.65:
            value = (
                round(value + rng.randint(1, 9) / 10, 1)
                if rng.random() < 0.8
                else round(value + rng.randint(1, 99) / 100, 2)
            )
        if value == int(value):
            value = int(value)
        return value, v.grouped(repr(value), rng)

    return s(v.Kind(v.NUMBER, v.in_split(draw)), keys)


_JOB = v.string(v.from_pool("job"))
_WORD = v.string(v.phrase)
_STATES = names(
    "AL AK AZ CA CO CT FL GA ID IL IN KS KY LA MA MD ME MI MN MO MT NC ND NE NH NJ NM NV NY OH OK OR PA SC TN TX UT VA VT WA WI WY"
)
_STATE = v.string(lambda r, _p: (n := r.choice(_STATES), n))
_UNIT = v.string(
    lambda r, _p: (
        n
        := f"{r.choice(('Apt', 'Apt.', 'Unit', 'Suite', 'Flat', 'Floor', 'Apartment'))} {r.choice((str(r.randint(1, 40)), v.letters(r, 1), f'{r.randint(1, 20)}{v.letters(r, 1)}'))}",
        n,
    )
)
_BROWSER = v.string(
    lambda r, _p: (n := r.choice(("Chrome", "Firefox", "Safari", "Edge", "Opera", "Brave", "Vivaldi")), n)
)
_DIRECTION = v.string(
    lambda r, _p: (
        n := r.choice(("north", "south", "east", "west", "northwest", "southeast", "northeast", "southwest")),
        n,
    )
)
_SEAT = v.string(lambda r, _p: (n := f"{r.randint(1, 42)}{v.letters(r, 1)}", n))
_GATE = v.string(lambda r, _p: (n := f"{v.letters(r, 1)}{r.randint(1, 60)}", n))
_VAGUE = v.string(v.vague_date)
_SERVICE = v.string(
    lambda r, p: (
        n := r.choice(
            (
                f"{v.pick(r, 'word', p)} {r.choice(('design', 'repair', 'hosting', 'cleaning', 'consulting', 'training', 'delivery', 'rental', 'support', 'licence', 'printing'))}",
                r.choice(
                    (
                        "labour",
                        "materials",
                        "shipping",
                        "hosting",
                        "consulting",
                        "installation",
                        "maintenance",
                        "travel",
                    )
                ),
                v.goods(r, p, r.random() < 0.5),
            )
        ),
        n,
    )
)

_ROWS = (
    "{product} for {price}", "a {product} for {price} euros", "{product} ({price})", "{product}: {price}", "{product} at {price} dollars",
    "{quantity} {product} for {price} dollars each", "{quantity} x {product} at ${price} each", "{quantity} x {product} @ ${price}", "{quantity} {product} at ${price}",
    "{quantity} x {product} at {price} EUR", "{quantity} {product} ({price} euros)", "{quantity}x {product}", "{product}, {quantity} pieces", "{product} {price}",
)  # fmt: skip

# What forms write before a value and no schema calls it.
LABELS: dict[str, dict[str, str]] = {
    "people": {"name": "full name; employee; contact", "email": "e-mail", "phone": "tel; tel.; mobile no.", "company": "works at", "city": "lives in", "birthday": "date of birth; DOB"},
    "addresses": {"name": "attn; attn.; to; deliver to; ship to; recipient name", "street": "street; street and number; address", "zip": "ZIP; PLZ; post code", "company": "deliver to; c/o; firm", "unit": "apt no."},
    "orders": {"customer": "ordered by; sold to; customer name", "order_id": "order no.; order #; no.", "amount": "qty; pcs; number", "unit_price": "price each; unit price", "city": "ship to; deliver to", "date": "needed by; order date", "total": "total due; sum"},
    "invoices": {"number": "invoice no.; invoice no; invoice #; no.; inv. no.", "customer": "bill to; billed to; attn", "client": "bill to; sold to", "vendor": "from; supplier; issued by", "total": "total due; amount due; grand total; balance due", "tax": "VAT; sales tax", "subtotal": "net; sub-total", "date": "invoice date; date of issue", "due": "due; payable by; pay by", "terms": "payable within; payment within"},
    "events": {"title": "event; what; topic", "place": "where; venue", "date": "when", "time": "from; begins; start", "end": "to; ends", "guests": "with; who; attendees", "host": "led by; with", "duration": "length; takes"},
    "bugs": {"title": "title; summary; problem", "reporter": "reported by; found by", "version": "found in; affects version", "os": "OS; operating system", "assignee": "assigned to", "date": "date; reported on", "steps": "to reproduce"},
    "measurements": {"sensor": "sensor no.; taken with", "place": "where", "operator": "measured by"},
    "weather": {"city": "place; where", "wind": "wind speed", "rain": "chance of rain"},
    "flights": {"origin": "from; leaving from", "destination": "to; going to", "time": "departs", "arrival": "arrives", "number": "flight no.; flight", "name": "passenger; name", "cabin": "class", "date": "outbound; date", "return": "return"},
    "dates": {"start": "from; starts on", "end": "to; until", "name": "employee; who", "lead": "led by"},
}  # fmt: skip

MORE: dict[str, More] = {
    "people": More(
        slots={
            "people": ListSlot(
                {
                    "name": s(PERSON, "name full_name person"),
                    "age": _count(16, 90, "age years"),
                    "job": s(_JOB, "job role occupation profession"),
                },
                names("people persons team members staff employees contacts participants"),
                (
                    "{name} ({age}, {job})",
                    "{name} ({job})",
                    "{name}, {job}",
                    "{name} ({age})",
                    "{name} - {job}",
                    "{name}, {age}",
                    "{name}, {age}, {job}",
                    "the {job} {name}",
                    "{name} who is {age}",
                    "{name}, a {job}",
                ),
            ),
            "manager": s(PERSON, "manager boss supervisor reports_to"),
            "department": s(_WORD, "department team division unit"),
            "salary": s(MONEY, "salary income pay yearly_salary"),
            "hired": s(DATE, "hired start_date joined hire_date"),
            "nationality": s(
                v.string(
                    lambda r, p: (
                        n := r.choice(
                            (
                                "Dutch",
                                "Polish",
                                "Kenyan",
                                "Chilean",
                                "Korean",
                                "Irish",
                                "Greek",
                                "Danish",
                                "Indian",
                                "Turkish",
                            )
                        ),
                        n,
                    )
                ),
                "nationality citizenship",
            ),
            "experience": s(
                v.Kind(v.INTEGER, v.duration("year")), "experience years_of_experience experience_years"
            ),
        },
        keys={
            "name": "employee contact person_name candidate applicant patient",
            "age": "age_in_years",
            "job": "position title job_title",
            "city": "location lives_in home place",
            "company": "organization workplace works_at",
            "email": "e_mail contact_email",
            "phone": "tel mobile phone_no",
            "birthday": "date_of_birth birthdate dob",
        },
        train=(
            "{people} (were present|came to the meeting|are on the team|joined us|work here|signed up)",
            "(present|team|members|participants|our staff|we met|the group is|on the list)[ were| are|:] {people}",
            "{name} joined us[ last week| in spring] as (a|an|the) [new ]{job}",
            "(just wanted to let you know|good news|we are happy to say) that {name} (joined|starts at) {company}[ as {job}]",
            "(my|our) (sister|brother|friend|colleague|neighbour|cousin|boss) {name} (turned|is|just turned) {age}[ yesterday| today]",
            "{name} is (head|director|manager) of the company {company}",
            "{name}",
            "this is about {name}",
            "employee {name}",
            "(patient|applicant|candidate|client|visitor): {name}[, {age}]",
            "{name} (from|of) {company} (called|wrote|was here)",
            "{name} ({age}) (from|of) {city}[ is (a|an) {job}]",
            "(a|the) {job} from {city}, {name}",
        ),
        clauses={
            "age": (
                "(he|she) is {age}[ years old]",
                "{age} years old",
                "aged {age}",
                "age {age}",
                "is {age} now",
            ),
            "job": (
                "works as (a|an) {job}",
                "(he|she) (is|works as) (a|an) {job}",
                "profession: {job}",
                "by profession (a|an) {job}",
                "a {job}",
                "earns (a|her|his) living as (a|an) {job}",
            ),
            "city": (
                "(he|she) lives in {city}",
                "lives in {city}",
                "based in {city}",
                "from {city}",
                "home is {city}",
                "moved to {city}",
                "grew up in {city}",
            ),
            "company": (
                "(he|she) works (at|for) {company}",
                "employed at {company}",
                "joined {company}",
                "works for {company}",
            ),
            "email": (
                "mail: {email}",
                "(his|her) (mail|email|e-mail) is {email}",
                "{email}",
                "you can mail {email}",
                "and (his|her) mail is {email}",
            ),
            "phone": (
                "you can call (him|her) at {phone}",
                "tel. {phone}",
                "{phone}",
                "mobile {phone}",
                "(his|her) number is {phone}",
            ),
            "birthday": (
                "(he|she) was born on {birthday}",
                "date of birth: {birthday}",
                "born {birthday}",
                "DOB {birthday}",
            ),
            "country": ("from {country}", "lives in {country}", "{country}"),
            "manager": (
                "reports to {manager}",
                "(his|her|the) (manager|boss) is {manager}",
                "manager: {manager}",
                "{manager} is (his|her) manager",
            ),
            "department": (
                "in the {department} department",
                "department: {department}",
                "works in the {department} team",
            ),
            "salary": (
                "earns {salary} (euros|dollars)",
                "salary: {salary}",
                "the salary is {salary} (EUR|USD|euros)",
                "with a yearly salary of {salary}",
            ),
            "hired": ("hired on {hired}", "joined on {hired}", "starts on {hired}", "start date: {hired}"),
            "nationality": (
                "nationality: {nationality}",
                "(he|she) is {nationality}",
                "{nationality} citizen",
            ),
            "experience": (
                "with {experience} of experience",
                "{experience} of experience",
                "has {experience} of experience",
            ),
        },
        groups={"contact": ("email", "phone"), "employer": ("company", "job")},
    ),
    "addresses": More(
        slots={
            "state": s(_STATE, "state region province"),
            "unit": s(_UNIT, "unit apartment apt flat suite"),
            "company": s(v.string(v.company), "company organization business firm"),
            "email": s(v.Kind(v.EMAIL, v.email), "email mail"),
        },
        keys={
            "name": "receiver contact attention to_name",
            "street": "street_name road address_line",
            "zip": "post_code zipcode plz",
            "city": "locality municipality",
            "country": "country_name",
        },
        train=(
            "{name}, {street}, {unit}, {city}, {state} {zip}",
            "{name}, {street}, {city}, {state} {zip}",
            "{street}, {city}, {state} {zip}",
            "(ship|send|deliver|mail) (it|this|the order|the replacement|the documents|two boxes) to {name}, {street}, [{unit}, ]{city}, {state} {zip}",
            "{company}, {street}, {zip} {city}[, {country}]",
            "{company}, attn {name}, {street}, {zip} {city}",
            "(our|the|my) [new ](office|warehouse|shop|flat|house|school|hotel) is [located ](at|on) {street}, {zip} {city}, {country}",
            "(our|the|my) (office|warehouse|clinic) (is located|stands|is) at {street}, {city}",
            "(deliver|delivery|ship|send) to: {company}, {street}, {city} {zip}",
            "{name} {street} {zip} {city}",
            "{name} {street} {city} {state} {zip}",
            "{street} {zip} {city} {country}",
            "I (live|moved|stay) (at|to) {street} in {city}[, {zip}]",
            "{name}[, {company}], {street}, {unit}, {zip} {city}",
            "my new address is {street}, {city}, {zip}",
            "return to {name}, {street}, {city}",
            "(write|come) to {street}, {city}[, {country}]",
            "the parcel goes to {city}, {street}",
            "{city}, {street}",
            "please update my address to {street}, [{unit}, ]{zip} {city}",
        ),
        clauses={
            "zip": ("zip {zip}", "postcode {zip}", "postal code: {zip}", "the zip code is {zip}"),
            "country": ("country: {country}", "{country}", "that is in {country}"),
            "company": ("company: {company}", "c/o {company}", "the company is {company}"),
            "name": (
                "ask for {name}",
                "attn: {name}",
                "c/o {name}",
                "contact: {name}",
                "the package is for {name}",
            ),
            "email": ("mail: {email}", "email {email}"),
            "unit": ("{unit}", "it is {unit}"),
            "state": ("state: {state}",),
            "phone": ("{phone}", "phone number {phone}", "tel. {phone}"),
        },
        groups={
            "address": ("street", "unit", "city", "state", "zip", "country"),
            "location": ("city", "country"),
            "recipient": ("name", "phone", "email"),
        },
    ),
    "orders": More(
        slots={
            "payment": s(
                v.enum({"card": ("credit card",), "cash": (), "invoice": (), "transfer": ("bank transfer",)}),
                "payment payment_method pay_with",
            ),
            "email": s(v.Kind(v.EMAIL, v.email), "email customer_email"),
            "product": s(v.string(v.product), "product item article product_name"),
            "amount": s(v.Kind(v.INTEGER, v.quantity), "quantity qty count amount number_of_items"),
            "unit_price": s(MONEY, "unit_price price price_per_unit price_each"),
            "address": s(v.string(v.street), "address street delivery_address"),
            "discount": s(v.Kind(v.INTEGER, v.count_number(1, 60)), "discount discount_percent"),
        },
        keys={
            "customer": "buyer_name ordered_by purchaser account",
            "items": "order products positions cart articles",
            "city": "ship_to_city place",
            "date": "deadline needed_by delivery_deadline",
            "order_id": "order_no order_nr number",
            "total": "total_amount amount_total grand_total",
        },
        train=(
            "{customer} (bought|ordered|wants|needs) {amount} {product}[ at {unit_price} each]",
            "{amount} x {product}[ at {unit_price}], customer {customer}",
            "(can|could) you send {amount} {product} to (our office in|us in|me in) {city}[ by {date}]",
            "product: {product}, quantity: {amount}[, price {unit_price}]",
            "order #{order_id} from {customer}: {items}",
            "(order|no.) {order_id}: {items}[. shipping to {city}]",
            "put {items} on the account of {customer}",
            "I'd like (to order|to buy|to get) {items}[. Deliver to {customer}]",
            "(yesterday|today|last week) {customer} (bought|ordered|returned) {items}",
            "(we|I) (need|want|order) {items}[ by {date}]",
            "{amount} {product} for {customer}[, {city}]",
            "{items}",
            "(cart|basket|shopping list|items|order): {items}",
            "{customer} paid {total} {currency} for {items}",
            "(please send|please prepare|get me) {amount} {product}",
            "{product}: {amount} pieces[ at {unit_price} {currency}]",
            "{customer} bought (a|one) {product} for {unit_price} {currency}",
            "{product}, {unit_price} {currency}, for {customer}",
        ),
        clauses={
            "customer": (
                "customer: {customer}",
                "deliver to {customer}",
                "for {customer}",
                "it is for {customer}",
                "my name is {customer}",
                "(put it on|charge) the account of {customer}",
            ),
            "city": ("shipping to {city}", "to our office in {city}", "the destination is {city}"),
            "date": (
                "by {date}",
                "needed until {date}",
                "it has to arrive by {date}",
                "order date {date}",
                "deadline: {date}",
            ),
            "order_id": (
                "order no. {order_id}",
                "order #{order_id}",
                "ref. {order_id}",
                "(the|my) order number: {order_id}",
            ),
            "total": (
                "total: {total} {currency}",
                "total {total} {currency}",
                "that makes {total} {currency}",
                "{total} {currency} in total",
                "the total comes to {total} {currency}",
                "total amount: {total} {currency}",
            ),
            "payment": (
                "payment by {payment}",
                "(he|she) pays by {payment}",
                "payment: {payment}",
                "paid with {payment}",
            ),
            "email": ("send the receipt to {email}", "email: {email}", "confirmation to {email}"),
            "address": ("deliver to {address}", "the address is {address}", "address: {address}"),
            "discount": (
                "with a discount of {discount}%",
                "{discount}% discount",
                "discount: {discount} percent",
            ),
            "status": ("status {status}", "it was {status}", "(the|this) order is now {status}"),
            "currency": ("currency: {currency}", "all prices in {currency}"),
        },
        forms={"items": _ROWS},
        groups={"buyer": ("customer", "email"), "delivery": ("city", "address", "date")},
    ),
    "invoices": More(
        slots={
            "client": s(v.string(v.company), "client customer buyer bill_to recipient"),
            "subtotal": s(MONEY, "subtotal net net_amount sub_total"),
            "tax": s(MONEY, "tax vat tax_amount vat_amount"),
            "tax_rate": s(
                v.Kind(v.INTEGER, lambda r, _p: (n := r.randint(3, 25), str(n))),
                "tax_rate vat_rate tax_percent vat_percent",
            ),
            "charges": ListSlot(
                {
                    "description": s(_SERVICE, "description service item text name what"),
                    "amount": s(MONEY, "amount price cost sum"),
                },
                names("charges line_items items lines services positions"),
                (
                    "{description} ({amount})",
                    "{description} {amount}",
                    "{description}: {amount}",
                    "{description} for {amount}",
                    "{description} at {amount}",
                    "{amount} for {description}",
                    "{description} - {amount}",
                ),
            ),
            "subject": s(_SERVICE, "description subject purpose service item"),
            "iban": s(
                v.string(
                    lambda r, p: (
                        n
                        := f"{v.letters(r, 2)}{r.randint(10, 99)} {r.randint(1000, 9999)} {r.randint(1000, 9999)} {r.randint(10, 99)}",
                        n,
                    )
                ),
                "iban account account_number",
            ),
            "po": s(v.string(v.code(("PO", "PO", "P"))), "po_number purchase_order order_number"),
            "terms": s(v.Kind(v.INTEGER, v.duration("day")), "payment_days terms days payment_terms_days"),
        },
        keys={
            "number": "invoice_nr no bill_number reference invoice",
            "vendor": "company issuer payee billed_by sender",
            "customer": "customer_name billed_to payer debtor",
            "total": "total_due amount_total balance grand_total total_amount",
            "date": "issued_on issue_date billing_date",
            "due": "deadline payable_by due_on",
        },
        train=(
            "invoice {number} from {vendor}, dated {date}",
            "invoice {number} from {vendor}[, dated {date}]. Bill to: {customer}. Amount due: {total} {currency}[ by {due}]",
            "{vendor} invoice no. {number} date: {date}",
            "{vendor}, invoice (no.|number|nr|#) {number}, date: {date}[, total: {total} {currency}]",
            "subtotal: {subtotal} {currency}, (VAT|tax) ({tax_rate}%): {tax} {currency}, total: {total} {currency}",
            "subtotal {subtotal}, tax {tax}, total {total} {currency}",
            "net {subtotal} {currency} plus {tax_rate}% VAT ({tax}), total {total} {currency}",
            "(attached|here) is the (bill|invoice) for the {subject}: {total} {currency}",
            "(please|kindly) (pay|transfer|send) {total} {currency} to {vendor} (by|before|until) {due}",
            "(we|I) still owe {vendor} {total} {currency} for invoice {number}",
            "invoice {number} to {customer} for {charges}",
            "invoice {number} to {client}: {charges}[. total of {total} {currency}]",
            "{vendor} charged {client} {total} {currency} for {subject}",
            "{vendor} billed us {total} {currency}[ for {subject}][ on {date}]",
            "our invoice {number} (to|for) {client} (over|of) {total} {currency}",
            "the {subject} cost {total} {currency}, invoice {number}",
            "invoice (number|no.|#): {number}, vendor: {vendor}, total: {total} {currency}",
            "bill (to|for): {client}. from: {vendor}",
            "{vendor} to {client}: {charges}",
            "(reminder|second notice|final notice): invoice {number} over {total} {currency} was due on {due}",
            "payment of {total} {currency} for invoice {number} (received|is missing)",
            "from: {vendor}, to: {customer}, invoice {number}",
            "{customer} owes {vendor} {total} {currency} for {subject}",
            "invoice {number}, {date}, {vendor}",
            "{vendor}, {number}, {date}, {total} {currency}",
        ),
        clauses={
            "total": (
                "total: {total} {currency}",
                "total due: {total} {currency}",
                "amount due: {total} {currency}",
                "the total is {total} {currency}",
                "total of {total} {currency}",
                "balance {total} {currency}",
                "(in total|altogether) {total} {currency}",
                "grand total {total} {currency}",
            ),
            "subtotal": (
                "subtotal: {subtotal} {currency}",
                "subtotal {subtotal}",
                "net amount {subtotal} {currency}",
            ),
            "tax": (
                "(VAT|tax): {tax} {currency}",
                "plus {tax} {currency} (VAT|tax)",
                "tax {tax}",
                "including {tax} {currency} of (VAT|tax)",
            ),
            "tax_rate": ("VAT {tax_rate}%", "tax rate: {tax_rate}%", "with {tax_rate}% tax"),
            "charges": ("for {charges}", "{charges}", "(items|positions|services|charges): {charges}"),
            "date": (
                "date: {date}",
                "invoice date {date}",
                "dated {date}",
                "issued {date}",
                "date of issue: {date}",
                "of {date}",
            ),
            "due": (
                "due on {due}",
                "due: {due}",
                "payable until {due}",
                "payment due {due}",
                "it was due on {due}",
                "pay before {due}",
                "due date {due}",
            ),
            "customer": (
                "bill to: {customer}",
                "bill to {customer}",
                "to: {customer}",
                "billed to: {customer}",
                "client: {customer}",
            ),
            "client": ("bill to: {client}", "client: {client}", "customer: {client}", "billed to {client}"),
            "vendor": (
                "from: {vendor}",
                "vendor: {vendor}",
                "supplier: {vendor}",
                "issued by {vendor}",
                "payable to {vendor}",
                "payee: {vendor}",
            ),
            "number": (
                "invoice no. {number}",
                "invoice #{number}",
                "invoice number: {number}",
                "our reference {number}",
                "ref: {number}",
            ),
            "iban": ("IBAN: {iban}", "to the account {iban}", "account {iban}"),
            "po": ("PO number {po}", "purchase order {po}", "your order {po}"),
            "terms": ("payable within {terms}", "payment within {terms}", "terms: {terms}", "net {terms}"),
            "paid": (
                "has been {paid}",
                "(it|this) is {paid}",
                "{paid}",
                "the amount is {paid}",
                "status {paid}",
            ),
        },
        forms={"items": _ROWS},
        groups={"amounts": ("subtotal", "tax", "total"), "parties": ("vendor", "customer")},
    ),
    "events": More(
        slots={
            "duration": minutes("duration_minutes minutes duration_min length_minutes"),
            "hours": s(v.Kind(v.INTEGER, v.duration("hour")), "hours duration_hours"),
            "price": s(MONEY, "price ticket_price entry_fee cost"),
            "when": s(_VAGUE, "when date day"),
            "contact": s(v.Kind(v.EMAIL, v.email), "contact email contact_email"),
            "limit": _count(4, 200, "max_participants limit max_guests participants_max places"),
        },
        keys={
            "title": "event_title meeting subject topic what",
            "date": "when on",
            "time": "begin begins_at starts start_at",
            "end": "ends_at finish until",
            "place": "room where site",
            "host": "organiser presenter instructor with lecturer led_by",
            "guests": "invitees members names",
            "seats": "places max_seats",
        },
        train=(
            "(reminder|don't forget|note): {title} {when}[ at {time}][ with {host}]",
            "{title} {when} at {time}[ in {place}]",
            "(we have|I have|there is) (a|an|the) {title} {when}[ at {time}]",
            "(let's|we will) (do|have|hold) (a|an) {title} for {duration} on {date}",
            "{title} | {date} | {time}-{end} | {place}, {city}",
            "{title} | {date} | {time} | {place}",
            '"{title}"[ on] {date}[ at {time}][, {place}]',
            "the {title} takes place on {date} at {time} in {place}",
            "(join us for|come to|welcome to|tickets for) the {title} at {place} in {city}",
            "{title}, {date}, {time}-{end}",
            "{title} from {time} to {end}",
            "doors open at {time} on {date}: {title}",
            "{host} (presents|gives|teaches) {title}[ on {date}]",
            "(please|kindly) (book|reserve) {place} for the {title} on {date}[ from {time} to {end}]",
            "{title}[ in {city}], {date}, with {host}",
            "the {title} (has been moved|was moved|is moved) to {date}[ at {time}]",
            "on {date} we (celebrate|hold|have) the {title}[ at {place}]",
            "{title} ({date}, {time})[ - {place}]",
            'workshop "{title}", {date}, {place}',
        ),
        clauses={
            "time": (
                "at {time}",
                "starts at {time}",
                "start: {time}",
                "doors open at {time}",
                "we begin at {time}",
                "{time}",
            ),
            "duration": (
                "it takes {duration}",
                "duration: {duration}",
                "for {duration}",
                "lasts {duration}",
                "about {duration}",
            ),
            "hours": ("it lasts {hours}", "for {hours}", "duration: {hours}"),
            "price": (
                "tickets are {price} (dollars|euros)",
                "entry: {price} (EUR|USD|pounds)",
                "tickets cost {price} (euros|dollars)",
                "entry fee {price} (euros|dollars)",
            ),
            "guests": (
                "attendees: {guests}",
                "with {guests}",
                "invited: {guests}",
                "{guests} are coming",
                "participants are {guests}",
            ),
            "host": (
                "hosted by {host}",
                "with {host}",
                "speaker: {host}",
                "led by {host}",
                "{host} is the host",
                "organised by {host}",
            ),
            "place": ("at {place}", "in {place}", "where: {place}", "room: {place}"),
            "city": ("in {city}", "city: {city}"),
            "seats": ("{seats} seats available", "seats: {seats}", "only {seats} places"),
            "limit": (
                "max {limit} participants",
                "up to {limit} people",
                "limited to {limit} guests",
                "at most {limit} people",
            ),
            "contact": ("sign up at {contact}", "contact {contact}", "register via {contact}"),
            "date": ("on {date}", "date: {date}", "it is on {date}"),
        },
        groups={"location": ("place", "city"), "schedule": ("date", "time", "end")},
    ),
    "bugs": More(
        slots={
            "browser": s(_BROWSER, "browser web_browser"),
            "assignee": s(PERSON, "assignee assigned_to owner developer"),
            "ticket": s(v.string(v.code(("BUG", "APP", "WEB", "QA"))), "ticket id ticket_id issue_id key"),
            "users": _count(2, 900, "users affected_users affected"),
            "steps": ListSlot(
                {"step": s(v.string(v.bug_step), "step")},
                names("steps steps_to_reproduce reproduction"),
                ("{step}",),
            ),
            "impact": s(
                v.enum({"minor": ("small",), "major": ("big",), "critical": ("blocking",)}),
                "severity impact priority level",
            ),
            "error": s(
                v.string(
                    lambda r, p: (
                        n := r.choice(
                            (
                                f"Error {r.randint(100, 599)}",
                                f"E{r.randint(10, 9999)}",
                                f"{v.pick(r, 'word', p).title()}Error",
                                f"0x{r.randint(10, 9999)}",
                            )
                        ),
                        n,
                    )
                ),
                "error error_code error_message code",
            ),
        },
        keys={
            "title": "description bug name what",
            "component": "part feature affected_component",
            "severity": "level impact",
            "version": "build app_version found_in",
            "os": "operating_system device_os",
            "reporter": "author submitted_by found_by",
            "date": "found_on created opened",
            "reproducible": "always reproducible_always",
        },
        train=(
            "{title}",
            "{title}",
            "{title}. (seen|found|noticed|observed) in (release|version|build) {version}[ on {os}]",
            "title: {title}[. priority: {severity}]",
            "title: {title}. severity: {severity}",
            "(bug report|report|issue) from {reporter}: {title}",
            "{reporter}: {title}[ ({os}, v{version})]",
            "{title} ({os}, version {version})",
            "{title} ({os})[. {impact} issue]",
            "(summary|description|problem|subject): {title}",
            "ticket {ticket}: {title}",
            "{ticket}: {title}[. assigned to {assignee}]",
            "(hi|hello), {title}[. I use version {version}]",
            "{title} - {severity}[ - {os}]",
            "{impact} bug: {title}",
            '"{title}"[ reported by {reporter}]',
            "(I noticed that|it seems that|we see that|users report that|since yesterday) {title}",
            "{component}: {title}",
            "in {browser} {title}",
            "{title} | {os} | {version} | {severity}",
        ),
        clauses={
            "version": (
                "seen in {version}",
                "v{version}",
                "app version: {version}",
                "found in release {version}",
                "with version {version}",
                "build {version}",
            ),
            "os": ("{os}", "happens on {os}", "only on {os}", "OS: {os}", "with {os}"),
            "severity": (
                "{severity} (severity|priority)",
                "severity: {severity}",
                "priority is {severity}",
                "I would call it {severity}",
                "{severity}",
            ),
            "impact": ("{impact} issue", "severity: {impact}", "this is a {impact} bug", "impact: {impact}"),
            "browser": ("{browser} browser", "browser: {browser}", "in {browser}", "using {browser}"),
            "assignee": (
                "assigned to {assignee}",
                "assignee: {assignee}",
                "{assignee} (will fix it|takes care of it|is on it)",
                "owner: {assignee}",
            ),
            "reporter": (
                "reported by {reporter}",
                "reporter {reporter}",
                "found by {reporter}",
                "thanks to {reporter} for the report",
            ),
            "ticket": ("ticket {ticket}", "ticket: {ticket}", "tracked as {ticket}"),
            "users": ("{users} users are affected", "affects {users} users"),
            "component": (
                "component: {component}",
                "affected component: {component}",
                "in the {component}",
                "the {component} is affected",
            ),
            "date": ("reported on {date}", "on {date}", "opened {date}", "first seen {date}"),
            "steps": ("steps: {steps}", "steps to reproduce: {steps}", "to reproduce: {steps}"),
            "error": ("the error is {error}", "error code {error}", "error: {error}", "it says {error}"),
            "reproducible": ("it {reproducible}", "{reproducible}", "the problem {reproducible}"),
        },
        groups={"environment": ("os", "version", "browser")},
    ),
    "measurements": More(
        slots={
            "temperature": _measure(-20, 95, "temperature temp temperature_c degrees"),
            "humidity": _count(5, 100, "humidity humidity_percent relative_humidity"),
            "pressure": _measure(0, 1050, "pressure pressure_bar air_pressure"),
            "weight": _measure(1, 2500, "weight weight_kg mass mass_kg"),
            "length": _measure(0, 900, "length length_m height distance"),
            "width": _measure(1, 400, "width width_cm diameter"),
            "height": _measure(1, 300, "height height_cm depth"),
            "speed": _measure(1, 300, "speed velocity rpm speed_kmh"),
            "voltage": _measure(0, 400, "voltage volts"),
            "current": _measure(0, 60, "current current_a amperes"),
            "flow": _measure(0, 60, "flow flow_rate throughput"),
            "pulse": _count(45, 180, "pulse heart_rate bpm"),
            "object": s(v.string(v.product), "object item thing specimen sample"),
            "minutes": minutes("minutes duration_minutes duration"),
        },
        keys={
            "value": "measurement number amount",
            "sensor": "sensor_name probe instrument meter device_name",
            "place": "where area sensor_location",
            "quantity": "what type kind metric",
            "time": "measured_at timestamp clock",
        },
        train=(
            "{quantity} {value} {unit}",
            "[sensor ]{sensor} in (the|) {place} (reported|measured|showed) {temperature} degrees[ Celsius][ at {time}]",
            "temperature {temperature} C, humidity {humidity}%[, pressure {pressure} (hPa|bar)]",
            "the {object} is {length} m long[, {width} cm wide] and weighs {weight} kg",
            "{object}: {length} x {width} cm, {weight} kg",
            "(we|I) measured a flow rate of {flow} l/min and a pressure of {pressure} bar[ on {sensor}]",
            "pulse {pulse} bpm, weight {weight} kg, temperature {temperature} C",
            "voltage {voltage} V, current {current} A[, {sensor}]",
            "{voltage} volts and {current} amps[ at {sensor}]",
            "the {object} weighs {weight} kg[ and is {height} cm (tall|high)]",
            "{temperature} degrees and {humidity} percent humidity[ in the {place}]",
            "length {length} m, width {width} cm[, height {height} cm]",
            "(measured|logged|readings): temperature {temperature}, humidity {humidity}, pressure {pressure}",
            "the (speed|velocity) was {speed} km/h[ at {time}]",
            "{sensor}: {temperature} C",
            "the {object} is {height} cm high and {width} cm wide",
        ),
        clauses={
            "temperature": (
                "temperature {temperature} C",
                "the temperature was {temperature} degrees",
                "temperature: {temperature}",
            ),
            "humidity": ("humidity was {humidity} percent", "humidity {humidity}%", "{humidity}% humidity"),
            "pressure": (
                "pressure {pressure} bar",
                "a pressure of {pressure} bar",
                "air pressure {pressure} hPa",
            ),
            "weight": (
                "weighs about {weight} kg",
                "weight: {weight} kg",
                "its weight is {weight} kg",
                "and weighs {weight} kg",
            ),
            "length": ("{length} m long", "length {length} m", "it is {length} metres long"),
            "width": ("{width} cm wide", "width: {width} cm", "diameter {width} cm"),
            "height": ("{height} cm high", "height: {height} cm", "depth {height} cm"),
            "speed": ("speed {speed} km/h", "at {speed} rpm", "a speed of {speed} km/h"),
            "voltage": ("voltage: {voltage} V", "at {voltage} volts"),
            "current": ("current: {current} A", "drawing {current} A"),
            "flow": ("a flow rate of {flow} l/min", "flow {flow} l/s"),
            "pulse": ("pulse {pulse}", "heart rate: {pulse} bpm"),
            "minutes": ("it took {minutes}", "for {minutes}", "duration {minutes}"),
            "place": ("in the {place}", "location: {place}", "at {place}"),
        },
        groups={"dimensions": ("length", "width", "height"), "climate": ("temperature", "humidity")},
    ),
    "weather": More(
        slots={
            "direction": s(_DIRECTION, "wind_direction direction wind_from"),
            "rain": _count(
                0, 100, "rain_chance precipitation_chance chance_of_rain rain_probability precipitation"
            ),
            "exact": _measure(-20, 42, "temperature temp temperature_c degrees_celsius"),
            "snow": _count(1, 90, "snow snow_cm snowfall"),
            "sunrise": s(TIME, "sunrise sun_up"),
            "sunset": s(TIME, "sunset sun_down"),
            "day": s(_VAGUE, "day when"),
            "country": s(v.string(v.country), "country nation"),
        },
        keys={
            "city": "town place_name where",
            "condition": "conditions description summary",
            "temperature": "temperature_celsius",
            "humidity": "humidity_pct",
            "wind": "wind_kmh wind_speed_kmh windspeed",
            "high": "high_temp max_temperature highest",
            "low": "low_temp min_temperature lowest",
        },
        train=(
            "{day} in {city}: {condition}[, {temperature} degrees]",
            "{city}, {day}: {condition}",
            "forecast for {city} on {date}: {condition}, high of {high}, low of {low}",
            "{exact} degrees in {city}[ and {condition}]",
            "it was a {condition} day in {city}[ with {exact} degrees]",
            "{condition}, {exact} C, {city}",
            "{city}: high {high}, low {low}[, {condition}]",
            "{city} ({country}): {condition}, {exact} degrees",
            "in {city} the sun rises at {sunrise} and sets at {sunset}",
            "{condition} expected in {city}[ on {date}]",
            "temperatures between {low} and {high} degrees in {city}",
            "{city} woke up to {condition} and {exact} degrees",
            "(tonight|this morning|right now) {city} has {condition} and {temperature} degrees",
        ),
        clauses={
            "direction": ("wind from the {direction}", "from the {direction}", "{direction} wind"),
            "rain": (
                "{rain}% chance of rain",
                "{rain} percent chance of rain",
                "chance of precipitation: {rain}%",
                "{rain}% chance of precipitation",
            ),
            "snow": ("{snow} cm of snow", "snow: {snow} cm"),
            "sunrise": ("sunrise at {sunrise}",),
            "sunset": ("sunset {sunset}", "the sun sets at {sunset}"),
            "humidity": (
                "only {humidity} percent humidity",
                "{humidity}% humidity",
                "with {humidity} percent humidity",
            ),
            "wind": ("wind {wind} km/h", "gusts of {wind} km/h", "with winds up to {wind} km/h"),
            "condition": ("conditions: {condition}", "it is {condition}", "{condition}"),
            "high": ("high {high}", "a high of {high} degrees"),
            "low": ("low {low}", "a low of {low} degrees", "at night {low} degrees"),
        },
        groups={"wind": ("wind", "direction"), "temperatures": ("high", "low")},
    ),
    "flights": More(
        slots={
            "return": s(DATE, "return_date return returning back inbound_date"),
            "arrival": s(TIME, "arrival_time arrives arrival arrival_at"),
            "gate": s(_GATE, "gate departure_gate"),
            "seat": s(_SEAT, "seat seat_number"),
            "bags": s(
                v.Kind(v.INTEGER, lambda r, _p: (n := r.randint(1, 5), v.counted(n, r))),
                "bags luggage baggage suitcases",
            ),
            "minutes": minutes("duration_minutes flight_minutes delay_minutes"),
            "terminal": s(
                v.string(lambda r, _p: (n := r.choice((str(r.randint(1, 5)), v.letters(r, 1))), n)),
                "terminal",
            ),
            "booking": s(
                v.string(lambda r, _p: (n := f"{v.letters(r, 3)}{r.randint(10, 99)}{v.letters(r, 1)}", n)),
                "booking booking_code confirmation pnr",
            ),
        },
        keys={
            "origin": "departure from_airport start departing_from",
            "destination": "arrival_airport arriving_at to_airport going_to",
            "date": "outbound_date outbound departure_day",
            "time": "departure departure_at leaves",
            "number": "flight_id flight_nr",
            "airline": "company operator",
            "passengers": "tickets adults people persons",
            "cabin": "travel_class ticket_class",
            "name": "passenger_name customer who",
            "price": "ticket_price amount total",
        },
        train=(
            "[flight ]{number} departs {origin} at {time} and arrives in {destination} at {arrival}",
            "(I|we) need {passengers} {cabin} class tickets from {origin} to {destination} on {date}[, returning {return}]",
            "{origin} to {destination}, {date}, (return|back) {return}",
            "{name} flew with {airline} from {origin} to {destination}",
            "{name} flew from {origin} to {destination}; the ticket cost {price} (dollars|euros)",
            "round trip from {origin} to {destination}, {date} to {return}",
            "(a|one) {cabin} ticket to {destination}, leaving {origin} on {date}",
            "{airline} {number} {origin} - {destination} {time} - {arrival}",
            "{number} to {destination}, gate {gate}[, seat {seat}]",
            "flight {number} to {destination} is delayed by {minutes}",
            "{passengers} adults from {origin} to {destination}[, {cabin}]",
            "from {origin} via {gate} to {destination}",
            "leaving {origin} on {date} at {time}, arriving in {destination} at {arrival}",
            "(departure|leaving): {origin}, {time}. arrival: {destination}, {arrival}",
            "booking {booking}: {name}, {origin} to {destination}[, {date}]",
        ),
        clauses={
            "return": (
                "returning {return}",
                "return {return}",
                "back on {return}",
                "return date {return}",
                "coming back on {return}",
            ),
            "arrival": (
                "arrival at {arrival}",
                "arrives at {arrival}",
                "landing at {arrival}",
                "arriving {arrival}",
            ),
            "gate": ("gate {gate}", "from gate {gate}", "gate: {gate}"),
            "seat": ("seat {seat}", "seat: {seat}", "sitting in {seat}"),
            "bags": ("with {bags} bags", "{bags} suitcases"),
            "minutes": ("the flight takes {minutes}", "delayed by {minutes}", "flight time {minutes}"),
            "terminal": ("terminal {terminal}", "from terminal {terminal}"),
            "booking": ("booking code {booking}", "confirmation {booking}"),
            "price": (
                "for {price} (dollars|euros)",
                "the ticket cost {price} (dollars|euros)",
                "price: {price} (EUR|USD)",
                "total {price} (euros|dollars)",
            ),
            "passengers": ("{passengers} passengers", "for {passengers} people", "passengers: {passengers}"),
            "date": ("on {date}", "date: {date}", "departing {date}"),
            "number": ("flight {number}", "flight number {number}"),
            "airline": ("flying {airline}", "{airline}", "carrier: {airline}"),
            "name": ("in the name of {name}", "traveller: {name}", "booked by {name}"),
        },
        groups={"departure": ("origin", "time", "gate"), "passenger": ("name", "seat")},
    ),
    "dates": More(
        slots={
            "days": s(v.Kind(v.INTEGER, v.duration("day")), "days duration_days day_count"),
            "months": s(v.Kind(v.INTEGER, v.duration("month")), "months duration_months"),
            "years": s(v.Kind(v.INTEGER, v.duration("year")), "years duration_years term_years"),
            "deposit": s(MONEY, "deposit fee monthly_rent amount"),
            "lead": s(PERSON, "lead project_lead manager responsible owner"),
            "substitute": s(PERSON, "substitute deputy replacement covered_by stand_in"),
            "project": s(
                v.string(
                    lambda r, p: (
                        n := v.company(r, p)[0].split()[0] if r.random() < 0.5 else v.phrase(r, p)[0].title(),
                        n,
                    )
                ),
                "project project_name title name",
            ),
            "reason": s(
                v.enum(
                    {
                        "vacation": ("holiday",),
                        "sick": ("sick leave",),
                        "parental": ("parental leave",),
                        "training": (),
                    }
                ),
                "reason type kind leave_type",
            ),
        },
        keys={
            "name": "who tenant member holder",
            "start": "start_day begin valid_from first_day",
            "end": "deadline expiry expires valid_until last_day",
            "what": "object thing type agreement",
        },
        train=(
            "the {what} (begins|starts) on {start} and runs for {years}",
            "the {what} (begins|starts) on {start} and lasts {months}",
            "project {project} (kicks off|starts|begins) on {start} and must be finished by {end}",
            "project {project}: {start} to {end}[, lead {lead}]",
            "{name} will be on (leave|parental leave|sick leave|holiday) from {start} until {end}",
            "{name} (has|gets|takes) {days} off from {start}",
            "{name} is away from {start} to {end}; {substitute} covers for (him|her)",
            "the deadline for {project} is {end}",
            "{project}, {start} - {end}",
            "(valid|open|closed) from {start} (to|until|through) {end}",
            "(we|they) (signed|extended) the {what} until {end}",
            "the {what} of {name} is valid for {years} from {start}",
            "{what} for {name}, start {start}, {months}",
        ),
        clauses={
            "lead": ("project lead: {lead}", "led by {lead}", "{lead} is responsible", "the lead is {lead}"),
            "substitute": (
                "{substitute} covers for (him|her|them)",
                "substitute: {substitute}",
                "replaced by {substitute}",
                "{substitute} takes over",
            ),
            "deposit": ("deposit: {deposit} euros", "the deposit is {deposit} dollars", "fee {deposit} EUR"),
            "years": ("for {years}", "term: {years}"),
            "days": ("{days} in total", "for {days}"),
            "months": ("for {months}", "it runs for {months}"),
            "reason": ("reason: {reason}",),
            "what": ("it is about the {what}", "subject: {what}"),
        },
        groups={"period": ("start", "end")},
    ),
}


def widened(name: str, domain: Domain) -> Domain:
    """The domain with everything that `MORE` has for it."""
    more = MORE[name]
    every: list[Slot | ListSlot] = list(domain.slots.values())
    every += [inner for slot in every if isinstance(slot, ListSlot) for inner in slot.inner.values()]
    kept = {key for slot in every for key in slot.test_names}  # for the test
    slots: dict[str, Slot | ListSlot] = {}
    for key, slot in {**domain.slots, **more.slots}.items():
        known = (*slot.names, *names(more.keys.get(key, "")))
        slots[key] = replace(slot, names=tuple(n for n in dict.fromkeys(known) if n not in kept))
        if isinstance(slot, ListSlot) and key in more.forms:
            slots[key] = replace(slots[key], forms=(*slot.forms, *more.forms[key]))  # type: ignore[call-arg]
    clauses = dict(domain.clauses)
    for key, texts in more.clauses.items():
        train, test = clauses.get(key, ((), ()))
        clauses[key] = ((*train, *texts), test)
    return Domain(slots, (*domain.train, *more.train), domain.test, clauses, {**domain.groups, **more.groups})
