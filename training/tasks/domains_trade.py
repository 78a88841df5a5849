"""The domains of trade: people, addresses, orders, invoices.

Enters: nothing. Leaves: plain data read by `records.py`.  Cost: none.
"""

# ruff: noqa: E501 - a template is one line of data

from __future__ import annotations

from training import values as v
from training.tasks.domain import CITY, CURRENCY, DATE, MONEY, PERSON, Domain, ListSlot, names, s

_ITEM = {
    "product": s(v.string(v.product), "product item name article", "product_name"),
    "quantity": s(v.Kind(v.INTEGER, v.quantity), "quantity count amount qty", "item_count"),
    "price": s(MONEY, "price unit_price", "price_each"),
}

PEOPLE = Domain(
    slots={
        "name": s(PERSON, "name full_name person", "person_name"),
        "age": s(v.Kind(v.INTEGER, v.count_number(1, 99)), "age years", "age_years"),
        "job": s(v.string(v.from_pool("job")), "job profession occupation role", "job_title"),
        "city": s(CITY, "city town home_city residence", "home_town"),
        "country": s(v.string(v.country), "country nation", "home_country"),
        "email": s(v.Kind(v.EMAIL, v.email), "email mail email_address", "contact_email"),
        "phone": s(v.string(v.phone), "phone phone_number telephone", "contact_phone"),
        "company": s(v.string(v.company), "company employer", "company_name"),
        "birthday": s(DATE, "birthday birth_date born", "date_of_birth"),
    },
    train=(
        "{name}[, {age},] (lives in|is from|comes from|is based in) {city}[ and works as (a|an) {job}]",
        "{name} is (a|an) {job}[ at {company}][ in {city}]",
        "(my name is|I am|this is) {name}[ and I am {age} years old][, I live in {city}]",
        "(meet|please add|new contact:|contact:) {name}[, {age} years old][, {job}][, {city}][, {country}]",
        "{name} (is|turned) {age}[ years old][ and (lives|resides) in {city}]",
        "{name}, {job}, {age}[, {city}]",
        "our new {job} is {name}[ from {city}][, born on {birthday}]",
        "(a|the) {age}[-]year[-]old {job}[ from {city}] (named|called) {name}",
        "{name} works (for|at) {company}[ as (a|an) {job}]",
        "name: {name}[; age: {age}]; (job|profession|occupation): {job}[; city: {city}]",
        "{job} {name}[ ({age})] (of|from) {city}[, {country}]",
        "in {city}[, {country},] (lives|there lives) {name}[, (a|an) {job}][ aged {age}]",
        "introducing {name}: {job}[, {age}][, {city}]",
        "(let me present|I want to present|we welcome|please welcome|say hello to) {name}, (our|the|a|the new) {job}[ (from|of) {city}]",
        "[the ]person is {name}, {age} years[, {job}][, from {city}]",
        "{name} who (is|was) (a|an) {job} (lives|lived|stays) in {city}[ and is {age}]",
        "{name} [({age}) ](lives|works) in {city}[ at {company}][ as {job}]",
        "(register|save|store|create) {name}[, age {age}][, job {job}][, city {city}][, company {company}]",
        "{name} - {job} - {city}[ - {age}]",
        "{age} years old, {name} (is|works as) {job}[ for {company}][ in {city}]",
        "(there is|I know|we hired) (a|an) {job} (who|that) is called {name}[ and (who|that) comes from {city}]",
        "{name}, who (is {age}|comes from {city}), (is|works as) (a|an) {job}",
        "{name} of {company}[, {city}], (is|was) (a|an) {job}[ and is {age} years old]",
        "{name} {age} {city}[ {job}]",
        "{name}, {age}, (is|was) (a|an) {job} (in|from|of) {city}[ and (mails|writes) from {email}]",
        "(save|add) (a|the) {job} {name}[ of {company}][, {age}]",
    ),
    test=(
        "{name} ({age}), {job} from {city}",
        "I would like to introduce {name}, (a|an) {job} who lives in {city}",
        "add {name}, who is {age} and works as (a|an) {job} at {company}",
        "{name} of {city} is {age} years old and (a|an) {job}",
    ),
    clauses={
        "email": (
            (
                "(email|mail|e-mail): {email}",
                "(write|mail) (to|me at) {email}",
                "the email [address ]is {email}",
                "contact {email}",
                "reach (him|her|me|them) (at|under|via) {email}",
                "(you|we) can write to {email}",
            ),
            ("(he|she) can be reached at {email}", "email is {email}"),
        ),
        "phone": (
            ("phone: {phone}", "call {phone}", "(tel|telephone) {phone}", "the phone number is {phone}"),
            ("phone number: {phone}",),
        ),
        "birthday": (
            (
                "born {birthday}",
                "born on {birthday}",
                "[the ]birthday is {birthday}",
                "birth date: {birthday}",
            ),
            ("was born on {birthday}",),
        ),
        "company": (
            ("(employed|working) (at|by) {company}", "company: {company}", "employer is {company}"),
            ("works at {company}",),
        ),
        "country": (("country: {country}", "the country is {country}"), ("citizen of country {country}",)),
    },
)

ADDRESSES = Domain(
    slots={
        "name": s(PERSON, "name recipient addressee", "recipient_name"),
        "street": s(v.string(v.street), "street address line1", "street_address"),
        "zip": s(v.string(v.postal_code), "zip postal_code postcode zip_code", "postal"),
        "city": s(CITY, "city town", "city_name"),
        "country": s(v.string(v.country), "country nation", "country_name"),
        "phone": s(v.string(v.phone), "phone telephone", "phone_number"),
    },
    train=(
        "(send|ship|mail|deliver|post) (it|this|the parcel|the letter) to {name}, {street}, {zip} {city}[, {country}]",
        "{name}, {street}, {city}[ {zip}][, {country}]",
        "{name} lives at {street} in {city}[, {country}]",
        "(the|my|our) [new ]address is {street}, {zip} {city}[, {country}]",
        "(address|addr): {street}, {city}, {zip}[, {country}]",
        "{name} moved to {street}, {city}[ {zip}]",
        "{street}, {zip} {city}",
        "you (can find|will find) {name} at {street}, {zip} {city}[, {country}]",
        "recipient: {name}; street: {street}; city: {city}[; zip: {zip}][; country: {country}]",
        "we are in {city} at {street}[, postal code {zip}]",
        "{name} - {street} - {zip} {city}[ - {country}]",
        "(to|for|attention): {name}, {street}, {city} {zip}[, {country}]",
        "[the ]parcel for {name} goes to {street}, {zip} {city}",
        "(send|take|bring) the (box|package|parcel|letter) (for|to) {name} to {street} in {city}[, {zip}]",
        "(our|the) (shop|house|store|company|flat) is (at|in) {street}, {city}[ {zip}][, {country}]",
        "{street} in {city}[, zip code {zip}][, {country}]",
        "{name} (can be found|stays|resides|works) at {street}, {city} {zip}",
        "[please ](mail|post|ship) (a|the) (letter|box|book) to {name} (in|of) {city}, {street}[, {zip}]",
        "(it|everything) goes to {street}, {city}, (zip|code) {zip}[ (for|care of) {name}]",
        "(deliver|hand) the (letter|box) to {name} at {street} in {city}[, {zip}]",
        "{name}, {city} {zip}, {street}",
        "(at|visit us at) {street}, {zip} {city}[, {country}][, ask for {name}]",
    ),
    test=(
        "please send the parcel to {name} at {street}, {city} {zip}",
        "{name}: {street}, {zip} {city}, {country}",
        "the office moved to {street} in {city}, zip {zip}",
        "deliver to {street}, {zip} {city}, for {name}",
    ),
    clauses={
        "phone": (("phone {phone}", "call {phone}", "tel: {phone}"), ("phone: {phone}",)),
        "name": (("for {name}", "(recipient|addressee|name): {name}"), ("recipient is {name}",)),
    },
    groups={"address": ("street", "zip", "city", "country")},
)

ORDERS = Domain(
    slots={
        "customer": s(PERSON, "customer buyer client customer_name name", "client_name"),
        "items": ListSlot(
            _ITEM,
            names("items products order_items lines"),
            (
                "{quantity} {product}",
                "{quantity} {product}",
                "{quantity} x {product}",
                "{product} x {quantity}",
                "{quantity} {product} at {price} each",
                "{quantity} {product} for {price}",
                "{product} ({quantity})",
                "{quantity} of the {product}",
                "{quantity} {product} ({price} each)",
            ),
            names("order_lines"),
        ),
        "city": s(CITY, "city ship_to destination delivery_city", "shipping_city"),
        "date": s(DATE, "date order_date delivery_date due", "due_date"),
        "order_id": s(
            v.string(v.code(("A", "ORD", "PO", "SO"))), "order_id order_number id reference", "order_no"
        ),
        "status": s(
            v.enum({"new": (), "paid": (), "shipped": (), "cancelled": ("canceled",), "pending": ()}),
            "status state",
            "order_status",
        ),
        "total": s(MONEY, "total total_price sum", "order_total"),
        "currency": s(CURRENCY, "currency", "currency_code"),
        "express": s(v.Kind(v.BOOLEAN, lambda r, _s: (True, "")), "express", "is_express"),
    },
    train=(
        "{customer} (ordered|bought|wants|needs|purchased|would like|has ordered) {items}[, (ship|send|deliver) to {city}]",
        "(order|send|ship|please send|I need|we need|I want|can I get|please order) {items} (for|to) {customer}[ in {city}]",
        "(order|purchase) [{order_id} ](by|from|for) {customer}: {items}",
        "(new order|order)[ {order_id}]: {items}[, customer {customer}][, (to|city) {city}]",
        "{items} (for|to) {customer}[, {city}]",
        "{customer} from {city} (ordered|bought|wants|needs) {items}[ for a total of {total} {currency}]",
        "[please ](ship|send|deliver) {items} to {customer} in {city}[ by {date}]",
        "on {date}, {customer} (ordered|bought|purchased) {items}",
        "{customer} (is ordering|places an order for|asks for|just bought) {items}[ on {date}]",
        "customer: {customer}; items: {items}[; city: {city}][; total: {total}]",
        "I am {customer}[ from {city}] and I (would like|want|need) {items}",
        "(hi|hello), (this is|my name is) {customer}, (I would like to order|I need|please send me) {items}",
        "{customer} (ordered|bought) {items} for {total} {currency}",
        "(we got|there is|we received|here is) (an|a new) order (by|from|of) {customer}[: {items}]",
        "(we have|I have) {items} for {customer}[, (city|to) {city}]",
        "{customer} of {city} (takes|gets|requests|will buy|will take) {items}",
        "(get|bring|sell) {customer} {items}[ (in|to) {city}]",
        "[please ](prepare|pack) {items} for {customer}[ and (ship|send) (it|them|everything) to {city}]",
        "(could|can) you (send|ship|deliver) {items} to {customer}[ in {city}]",
        "{customer}: {items}[; {city}]",
        "{customer}, {city}: {items}",
        "(to|destination) {city}: {items}, (buyer|client|customer) {customer}",
        "{items} were (ordered|bought) by {customer}[ on {date}]",
        "{customer} (in|of|from) {city} (would|should|could|must) (need|have|order|get|take) {items}",
        "(here is|note) an order (by|of) {customer} (in|at) {city}: {items}",
        "(I|we) have to (send|ship|bring) {items} to {customer}, {city}",
        "[order ]{order_id} (of|for) {customer}: {items}[, {date}]",
        "{customer} (in|at) {city} (orders|will order|likes to order) {items}[ for {date}]",
        "{customer} (wanted|asked for|takes) {items} (on|by|for) {date}",
    ),
    test=(
        "{customer} in {city} would like to buy {items}",
        "please deliver {items} to {customer}, {city}",
        "order {order_id}: {customer} wants {items} on {date}",
        "we have an order from {customer} for {items}, ship to {city}",
    ),
    clauses={
        "date": (
            ("deliver by {date}", "(due|needed by) {date}", "delivery date {date}", "ordered on {date}"),
            ("please deliver on {date}",),
        ),
        "city": (("ship to {city}", "deliver [it ]to {city}", "destination: {city}"), ("send it to {city}",)),
        "order_id": (
            ("order number {order_id}", "[the ]reference is {order_id}", "order id {order_id}"),
            ("the order number is {order_id}",),
        ),
        "status": (
            ("status: {status}", "the order is {status}", "it is [already ]{status}"),
            ("this order is {status}",),
        ),
        "total": (
            (
                "total {total}",
                "[the ]total is {total}",
                "in total {total} {currency}",
                "the sum is {total} {currency}",
            ),
            ("total: {total} {currency}",),
        ),
        "express": (
            (
                "express[ please]{express}",
                "(by|use|with) express [delivery]{express}",
                "express (delivery|shipping)[, please]{express}",
            ),
            ("send by express please{express}",),
        ),
    },
)

INVOICES = Domain(
    slots={
        "number": s(
            v.string(v.code(("INV", "R", "F", "INV"))), "number invoice_number invoice_id id", "invoice_no"
        ),
        "vendor": s(v.string(v.company), "vendor supplier seller from", "vendor_name"),
        "customer": s(PERSON, "customer client bill_to", "customer_name"),
        "total": s(MONEY, "total amount amount_due sum", "total_amount"),
        "currency": s(CURRENCY, "currency", "currency_code"),
        "date": s(DATE, "date invoice_date issued", "issue_date"),
        "due": s(DATE, "due due_date pay_by", "payment_due"),
        "paid": s(
            v.Kind(
                v.BOOLEAN,
                lambda r, _s: r.choice(
                    (
                        (True, "paid"),
                        (True, "already paid"),
                        (True, "settled"),
                        (False, "unpaid"),
                        (False, "not paid yet"),
                        (False, "still open"),
                        (False, "overdue"),
                    )
                ),
            ),
            "paid",
            "is_paid",
        ),
        "items": ListSlot(
            _ITEM,
            names("items lines positions"),
            (
                "{quantity} {product} at {price}",
                "{quantity} x {product} at {price}",
                "{product}, {quantity} x {price}",
                "{quantity} {product} for {price} each",
                "{quantity} {product}",
            ),
            names("invoice_lines"),
        ),
    },
    train=(
        "invoice {number} from {vendor} (for|over|of) {total} {currency}[, due [on ]{due}][, {paid}]",
        "{vendor} (billed|charged|invoiced) {customer} {total} {currency}[ on {date}][ for {items}]",
        "invoice (number|no) {number}, {vendor}, {total} {currency}[, issued {date}][, due {due}]",
        "(bill|invoice) {customer} {total} {currency} for {items}[, due {due}]",
        "(please pay|pay|we owe) {total} {currency} to {vendor} by {due}[, invoice {number}]",
        "{customer} (owes|paid|must pay) {vendor} {total} {currency}[ (by|until) {due}]",
        "invoice {number}[ dated {date}]: {items}, total {total} {currency}",
        "[on {date} ]{vendor} (issued|sent) invoice {number} to {customer}[ for {total} {currency}]",
        "vendor: {vendor}; invoice: {number}; amount: {total} {currency}[; due: {due}]",
        "we received invoice {number} from {vendor}: {items}[, total {total} {currency}]",
        "{number}: {vendor}, {total} {currency}[, due {due}]",
        "{vendor} (wants|asks for|requests) {total} {currency} from {customer}[ by {due}]",
        "[the ]bill {number} of {vendor} is {total} {currency}[, payable (on|by) {due}]",
        "{total} {currency} (to|for) {vendor}[ due (on|by) {due}][, invoice {number}]",
        "(a|the) bill (from|by|of) {vendor} (to|for) {customer}: {items}[, {total} {currency}]",
        "(an|the) invoice of {total} {currency} (from|by) {vendor}[ was sent to {customer}][ on {date}]",
        "{vendor} sells {customer} {items}[, invoice {number}]",
        "{vendor}, {number}: {items}[, (due|payable) {due}]",
        "(invoice|bill) {number}: {vendor} to {customer}, {total} {currency}[, {date}]",
        "{customer} (received|got) invoice {number} (from|by) {vendor}[ over {total} {currency}][, due (on|by) {due}]",
        "{number}, {vendor}, {items}, (payable|due) (on|by|until) {due}",
    ),
    test=(
        "invoice {number} by {vendor} to {customer}, {total} {currency}, due on {due}",
        "{vendor} sent {customer} a bill of {total} {currency} on {date}",
        "please pay invoice {number} of {vendor}: {total} {currency} until {due}",
        "{number} from {vendor} for {items}, due {due}",
    ),
    clauses={
        "paid": (
            ("it is {paid}", "(the invoice|this) is {paid}", "status: {paid}"),
            ("that invoice is {paid}",),
        ),
        "due": (
            ("due {due}", "due date: {due}", "payable by {due}", "please pay by {due}"),
            ("it is due on {due}",),
        ),
        "date": (("issued on {date}", "invoice date: {date}", "dated {date}"), ("date of issue {date}",)),
        "customer": (
            ("customer: {customer}", "billed to {customer}", "for client {customer}"),
            ("the customer is {customer}",),
        ),
    },
)
