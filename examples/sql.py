"""SQL over a schema: queries that name the tables and columns that there are, and no others.

python examples/sql.py
"""

from __future__ import annotations

import sqlite3

import structgen as sg

TABLES = {"orders": ["id", "customer", "total"], "customers": ["name", "city"]}


def grammar() -> str:
    """A grammar of queries in GBNF, made from the tables."""
    queries, rules = [], []
    for table, columns in TABLES.items():
        names = " | ".join(f'"{column}"' for column in columns)
        rules.append(f"{table}-column ::= {names}")
        rules.append(f'{table}-list ::= {table}-column (", " {table}-column){{0,3}} | "count(*)"')
        rules.append(f'{table}-where ::= (" WHERE " {table}-column operator value)?')
        queries.append(f'"SELECT " {table}-list " FROM {table}" {table}-where ";"')
    rules += ['operator ::= " = " | " < " | " > "', 'value ::= [0-9]{1,6} | "\'" [A-Za-z ]{1,20} "\'"']
    return "\n".join([f"root ::= {' | '.join(queries)}", *rules])


def main() -> None:
    base = sqlite3.connect(":memory:")
    for table, columns in TABLES.items():
        base.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    for seed in range(4):
        query = sg.generate(None, "orders above 100", gbnf=grammar(), temperature=1.0, seed=seed).text
        rows = base.execute(query).fetchall()  # every query of the grammar runs
        print(f"{query}  -- {len(rows)} rows")


if __name__ == "__main__":
    main()
