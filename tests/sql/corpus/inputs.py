"""Rows of tables, made from the names and types of their columns; a seed makes the same rows."""

from __future__ import annotations

import json
import random
import re
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.sql.corpus.ddl import Column, Table, without_comments

_START = datetime(2026, 3, 2, 7, 58, 30, tzinfo=UTC)
_ROWS = 48
#: Values of texts, for columns whose names contain a word.
_WORDS: dict[str, Sequence[str]] = {
    "email": ["ann@example.com", "bob@mail.example.org", "cy.d@example.com"],
    "phone": ["+49-30-1234", "030 5678"],
    "url": ["https://shop.example/item/a/1?ref=x", "https://shop.example/cart", "/home", "/b/22"],
    "path": ["/", "/cart", "/items/7", "/checkout"],
    "page": ["home", "cart", "search", "checkout"],
    "referrer": ["https://search.example/?q=tea", "direct", ""],
    "card": ["1111 2222 3333 4444", "5555 6666 7777 8888"],
    "city": ["berlin", "Seattle", "Portland", "PARIS", " Oslo "],
    "state": ["OR", "ID", "CA", "WA"],
    "country": ["DE", "US", "FR"],
    "currency": ["EUR", "USD", "GBP", "CHF"],
    "symbol": ["ACME", "GLOBEX"],
    "channel": ["Google", "Facebook", "baidu", "apple"],
    "status": ["created", "paid", "shipped", "cancelled"],
    "level": ["INFO", "WARN", "ERROR"],
    "message": ["GET /cart 200", "GET /home 500", "user=ann code=7", "timeout after 30 ms"],
    "device": ["mobile", "desktop", "tablet"],
    "type": ["view", "click", "cart", "purchase"],
    "action": ["view", "click", "cart", "purchase"],
    "tags": ["a", "b,c", "new"],
    "category": ["books", "toys", "garden"],
    "tier": ["gold", "silver", "basic"],
    "ip": ["10.0.0.1", "10.0.0.2", "192.168.1.7"],
    "carrier": ["DHL", "UPS"],
    "method": ["card", "cash", "transfer"],
    "name": ["Ann", "bob b.", "Çelik", "o'Neil", ""],
    "extra": ["abc", "", "aXbXc", "x=1&y=22"],
    "description": ["an old chair", "Tea, green", "50% off", "under_score"],
}  # fmt: skip
_JSON = re.compile("payload|json|body|raw|data$", re.I)
_KEY = re.compile("(^|_)(id|key|host|driver|user|account|vin|sku)s?$|Id$|^(auction|bidder|seller)$")


class Rows:
    """Rows of tables.

    Parameters
    ----------
    texts : str
        What is compared in these with a column (``status = 'PAID'``) is among its values.
    seed : int
    """

    def __init__(self, texts: str, seed: int = 0) -> None:
        self._texts = without_comments(texts)
        self._seed = seed

    def rows(self, table: Table) -> list[dict[str, Any]]:
        """Return rows of a table in order of arrival: none is late, some have equal times."""
        rng = random.Random(zlib.crc32(table.name.encode()) + self._seed)
        is_lookup = table.time is None and bool(table.key)
        count = 8 if is_lookup else _ROWS
        times = _times(rng, count, max(0, table.delay_ms - 1))
        rows: list[dict[str, Any]] = []
        for place in range(count):
            row = {each.name: self._value(rng, table, each, place, times) for each in table.columns}
            key = tuple(row[name] for name in table.key)
            if not is_lookup or key not in {tuple(old[n] for n in table.key) for old in rows}:
                rows.append(row)
        return rows

    def _value(
        self, rng: random.Random, table: Table, column: Column, place: int, times: list[datetime]
    ) -> Any:
        if column.name == table.time:
            return time_value(times[place], column.type, table.time_unit)
        fixed = not column.is_nullable or column.metadata is not None or column.name in table.key
        if not fixed and rng.random() < 0.06:
            return None
        if pa.types.is_timestamp(column.type) or re.search("_(ms|at|ts)$", column.name):
            moved = times[place] + timedelta(seconds=rng.choice([-90, 0, 5, 61, 7200]))
            if pa.types.is_timestamp(column.type) or pa.types.is_int64(column.type):
                return time_value(moved, column.type, "ms")
        return self._plain(rng, column.name, column.type)

    def _plain(self, rng: random.Random, name: str, kind: pa.DataType) -> Any:
        if pa.types.is_string(kind):
            return self._text(rng, name)
        if pa.types.is_boolean(kind):
            return rng.random() < 0.5
        if pa.types.is_integer(kind):
            number = self._integer(rng, name)
            return number % 100 if pa.types.is_int8(kind) else number
        if pa.types.is_floating(kind):
            return rng.randrange(40, 480) / 4
        if pa.types.is_decimal(kind):
            digits = min(kind.scale, 2)
            least_large = 10 ** (kind.precision - kind.scale + digits)
            value = Decimal(rng.randrange(1, min(20_000, least_large))).scaleb(-digits)
            return value.quantize(Decimal(1).scaleb(-kind.scale))
        if pa.types.is_date(kind):
            return date(2026, 1, 1) + timedelta(days=rng.randrange(120))
        if pa.types.is_timestamp(kind):
            return time_value(_START + timedelta(seconds=rng.randrange(7200)), kind, "ms")
        if pa.types.is_map(kind):
            keys = rng.sample(["env", "zone", "team"], rng.randrange(1, 4))
            return [(key, self._plain(rng, key, kind.item_type)) for key in keys]
        if pa.types.is_list(kind):
            return [self._plain(rng, name, kind.value_type) for _ in range(rng.randrange(4))]
        return {field.name: self._plain(rng, field.name, field.type) for field in kind}

    def _integer(self, rng: random.Random, name: str) -> int:
        wanted = self._compared_values(name, r"(\d+)")
        if wanted and rng.random() < 0.4:
            return int(rng.choice(wanted))
        if _KEY.search(name) or "category" in name:
            return rng.randrange(1, 7)
        return rng.randrange(1, 8 if re.search("qty|quantity|cnt|count", name, re.I) else 4000)

    def _text(self, rng: random.Random, name: str) -> str:
        if _JSON.search(name):
            user, amount = rng.choice("abc"), rng.randrange(400) / 4
            kinds = ["view", "click", "purchase"]
            value = {"user": {"id": user}, "amount": amount, "type": rng.choice(kinds)}
            text = json.dumps({**value, "tags": ["x", user]})
            return rng.choice([text, text, "{}", "not json"])
        compared = self._compared_values(name, "'([^']*)'")
        if compared and rng.random() < 0.6:
            return rng.choice(compared)
        if not _KEY.search(name):
            parts = re.sub("([a-z])([A-Z])", r"\1_\2", name).lower().split("_")
            for word, values in _WORDS.items():
                if any(part.startswith(word) for part in parts):
                    return rng.choice(values)
        return f"{name.lower().removesuffix('id').rstrip('_')[:4]}{rng.randrange(1, 5)}"

    def _compared_values(self, name: str, literal: str) -> list[str]:
        one = rf"\b{name}`?\s*(?:=|<>|!=|IN\s*\(|LIKE|>=|<=|>|<)\s*((?:{literal}\s*,?\s*)+)"
        lists = re.findall(one, self._texts, re.I)
        found = [each for m in lists for each in re.findall(literal, m[0]) if "%" not in each]
        return sorted(set(found))


def _times(rng: random.Random, count: int, jitter_ms: int) -> list[datetime]:
    """Return times that are out of order by some milliseconds, with ties and gaps."""
    at, times = _START, []
    for _ in range(count):
        gap = rng.choice([0, 1000, 2000, 7000, 7000, 20_000, 45_000, 61_500, 300_000])
        if rng.random() < 0.06:
            gap = rng.choice([1_800_000, 7_200_000, 30_000_000])
        at += timedelta(milliseconds=gap if jitter_ms else max(gap, 500))
        late = min(jitter_ms, rng.choice([0, 0, 0, 1, 999, 1000, 3000, 60_000]))
        times.append(at - timedelta(milliseconds=late))
    return times


def time_value(at: datetime, kind: pa.DataType, unit: str) -> datetime | int | str:
    """Return an instant as a value of a column; ``unit``: what numbers count, ``ms`` or ``s``."""
    if pa.types.is_integer(kind):
        return int(at.timestamp() * 1000) if unit == "ms" else int(at.timestamp())
    if pa.types.is_string(kind):
        return at.strftime("%Y-%m-%d %H:%M:%S")
    return at if kind.tz else at.replace(tzinfo=None)


def flink_rows(table: Table, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows as the oracle's `Texts` reads them."""
    return [
        {c.metadata or c.name: _flink(row[c.name], c.type) for c in table.columns} for row in rows
    ]


def _flink(value: Any, kind: pa.DataType) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat() + ("Z" if value.tzinfo else "")
    if isinstance(value, Mapping):
        return [_flink(value[field.name], field.type) for field in kind]
    if pa.types.is_map(kind):
        return [[key, _flink(each, kind.item_type)] for key, each in value]
    if isinstance(value, list):
        return [_flink(each, kind.value_type) for each in value]
    return str(value)


def arrow_table(table: Table, rows: list[dict[str, Any]], *, zone: str | None = None) -> pa.Table:
    """Return rows as a table of Arrow; times without a zone are of ``zone`` if it is given."""
    made = pa.Table.from_pylist(rows, schema=table.schema)
    for place, column in enumerate(table.columns):
        if pa.types.is_timestamp(column.type) and column.type.tz is None and zone is not None:
            made = made.set_column(
                place, column.name, made.column(place).cast(pa.timestamp("us", zone))
            )
    return made
