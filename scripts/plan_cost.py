#!/usr/bin/env python3
"""Measures the Redis CPU time of plans with five limits, by part, and prints Markdown tables.

usage: plan_cost.py [ROUNDS]

It starts a Redis server and sends calls of `decide_buckets` as RedisStore does: 100,000 random subjects, 32 plans with one
limit or 25 plans with five limits in a call (at most 128 takes), or one plan in a call. The parts are functions that get the
same calls and do only a part of the work. Every row runs once per round; ratios are computed per round. The figures are the
median and, in parentheses, the quartiles of ROUNDS rounds (default 60, at least 2).

*One value* keeps all limits of a subject in one value. It is a lower bound: it has no refusals, older formats or pauses, a
plan always has the same limits, the second plan of a subject in a call does not see the first, and its code is generated for
the number of limits, without a loop.

Set TOLLGATE_REDIS_SERVER to use another redis-server.
"""

import itertools
import os
import random
import socket
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

LUA = Path(__file__).resolve().parent.parent / "crates/tollgate-redis/lua"
SUBJECTS = 100_000
BURST = 10_000_000
# Microseconds per token. Nothing refills during a run.
PERIOD = 600_000_000
CALLS_PER_ROUND = 250

# Parts of a call, each with the parts before it.
RECEIVE = "local function decide(keys) return 1 end"
READ = "local function decide(keys) redis.call('MGET', unpack(keys)) return 1 end"
WRITE = """
local function decide(keys)
  local write, values = redis.call, redis.call('MGET', unpack(keys))
  for number = 1, #keys do
    write('SETRANGE', keys[number], '0', values[number])
  end
  return 1
end
"""
# A reply as long as that of a decision, without the other parts.
REPLY = """
local function decide(keys, args)
  local limits = struct.unpack('>I2', args[1])
  local plans = (#args[1] - 2 - 23 * limits) / (2 + 12 * limits)
  local reply = {}
  for index = 1, 1 + 3 * limits * plans do
    reply[index] = 9999999
  end
  return reply
end
"""


def parts(*names):
    return "\n".join((LUA / f"{name}.lua").read_text() for name in names)


def separate_values():
    """The product: each limit has a key. States that need the general program do not occur."""
    general = "local function general() error('unusual state') end\n"
    return parts("clock", "bucket_format") + general + parts("buckets") + "\nlocal decide = decide_buckets"


def one_value(limits):
    """All limits in one value: tick and time, then deficit, give and capacity of each limit."""

    def each(text, separator="\n"):
        return separator.join(text.replace("#", str(number)) for number in range(1, limits + 1))

    figures = each("""
    reply[size + 1], reply[size + 2], reply[size + 3] = 0, burst# - (used# + -used# % 1), reset# + -reset# % 1
    size = size + 3""")
    return parts("clock", "bucket_format") + f"""
local STATE = '>BI7{"I7I5I7" * limits}'
local known = {{}}

local function read_limits(list)
  local limits, life = {{}}, 0
  for number = 1, {limits} do
    local burst, give, grains = struct.unpack('>xI7I7I7', list, 23 * number - 22)
    limits[number] = {{ burst = burst, give = give, grains = grains, capacity = burst * grains }}
    life = math.max(life, math.ceil(burst * grains / give) + GRACE * 1000)
  end
  limits.ttl, limits.unit = string.format('%d', math.ceil(life / 1000)), math.ceil(life / 62)
  limits.life, limits.cycle = life - GRACE * 500, 128 * limits.unit
  known[list] = limits
  return limits
end

local function decide(keys, args)
  local now, call, decode, encode, write = read_time(), args[1], struct.unpack, struct.pack, redis.call
  local values = write('MGET', unpack(keys))
  local list = string.sub(call, 3, {2 + 23 * limits})
  local limits = known[list] or read_limits(list)
  {each("local l# = limits[#]; local burst#, give#, grains#, capacity# = l#.burst, l#.give, l#.grains, l#.capacity")}
  local life, unit, cycle, ttl = limits.life, limits.unit, limits.cycle, limits.ttl
  local at, last, reply, size = {3 + 23 * limits}, #call, {{ now }}, 1
  while at <= last do
    local key, {each("cost#", ", ")}
    key, {each("cost#", ", ")}, at = decode('>xI2{"I7" * limits}', call, at)
    local value, tick, since = values[key], nil, now
    local {each("deficit#", ", ")} = {each("0", ", ")}
    if value then
      local {each("old_give#, old_capacity#", ", ")}
      tick, since, {each("deficit#, old_give#, old_capacity#", ", ")} = decode(STATE, value)
      if since > now or {each("old_give# ~= give# or old_capacity# ~= capacity#", " or ")} then
        error('unusual state')
      end
      local age = now - since
      {each("deficit# = deficit# - give# * age; if deficit# < 0 then deficit# = 0 end")}
    end
    if {each("deficit# > (burst# - cost#) * grains#", " or ")} then
      error('refused')
    end
    {each("deficit# = deficit# + cost# * grains#")}
    {each("local used#, reset# = deficit# / grains#, deficit# / give#")}
    if tick and (now - tick * unit) % cycle + math.max({each("reset#", ", ")}) <= life then
      write('SETRANGE', keys[key], '0', encode(STATE, tick, now, {each("deficit#, give#, capacity#", ", ")}))
    else
      tick = 128 + math.floor(now / unit) % 128
      write('PSETEX', keys[key], ttl, encode(STATE, tick, now, {each("deficit#, give#, capacity#", ", ")}))
    end
    {figures}
  end
  return reply
end
"""


def command(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"".join([b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)])


def number(value):
    return value.to_bytes(7, "big")


def call(function, subjects, limits, is_one_value):
    """A call with one plan for each subject, in the format of call/batch.rs."""
    periods = [PERIOD // (index + 1) for index in range(limits)]
    packed = [struct.pack(">H", limits)]
    packed += [b"b" + number(BURST) + number(1) + number(period) + b"\0" for period in periods]
    keys = {}

    def key_number(key):
        return keys.setdefault(key, len(keys) + 1)

    for subject in subjects:
        name = f"tollgate:{{user{subject}}}:"
        if is_one_value:
            packed += [struct.pack(">BH", 1, key_number(name + f"all/{limits}")), number(1) * limits]
            continue
        packed.append(struct.pack("BB", 1, limits))
        for index, period in enumerate(periods):
            key = key_number(name + f"b{BURST}/{period}")
            packed.append(struct.pack(">BHH", 0, key, index + 1) + number(1))
    return command("FCALL", function, len(keys), *keys, b"".join(packed))


class Redis:
    """A server, and a connection to it."""

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = free.getsockname()
        program = os.environ.get("TOLLGATE_REDIS_SERVER", "redis-server")
        settings = ["--bind", address[0], "--port", str(address[1]), "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen([program, *settings], stdout=subprocess.DEVNULL)
        for _ in range(100):
            try:
                self.connection = socket.create_connection(address)
                break
            except OSError:
                time.sleep(0.1)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        self.replies = self.connection.makefile("rb")

    def send(self, command):
        """Returns the lines of the reply: an array of numbers, or one line."""
        self.connection.sendall(command)
        line = self.replies.readline()
        if line.startswith(b"-"):
            sys.exit(f"plan_cost.py: Redis returned {line.decode().strip()}")
        if line.startswith(b"$"):
            return [self.replies.read(int(line[1:]) + 2)]
        if line.startswith(b"*"):
            return [self.replies.readline() for _ in range(int(line[1:]))]
        return [line]

    def load(self, name, code):
        register = f"redis.register_function('{name}', decide)"
        self.send(command("FUNCTION", "LOAD", f"#!lua name={name}\n{code}\n{register}\n"))

    def cpu_seconds(self):
        threads = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


class Row:
    """A measurement: calls of one function, each with the same number of plans."""

    def __init__(self, name, function, limits, plans):
        self.name, self.function, self.limits, self.plans = name, function, limits, plans
        self.is_one_value = function == "one_value"
        self.micros = []
        choose = random.Random(1)
        batches = ([choose.randrange(SUBJECTS) for _ in range(plans)] for _ in range(4 * CALLS_PER_ROUND))
        self.calls = itertools.cycle([self.call(subjects) for subjects in batches])

    def call(self, subjects):
        return call(self.function, subjects, self.limits, self.is_one_value)

    def check(self, redis, unused):
        """Two decisions for an unused subject, each of which takes one token."""
        for remaining in [BURST - 1, BURST - 2]:
            reply = redis.send(self.call([unused]))
            figures = [int(line[1:]) for line in reply[1:]]
            if figures[0::3] != [0] * self.limits or figures[1::3] != [remaining] * self.limits:
                sys.exit(f"plan_cost.py: {self.name}: wrong reply {figures}")

    def fill(self, redis):
        for first in range(0, SUBJECTS, 25):
            redis.send(self.call(range(first, first + 25)))

    def measure(self, redis):
        count = CALLS_PER_ROUND if self.plans > 1 else 8 * CALLS_PER_ROUND
        before = redis.cpu_seconds()
        for call in itertools.islice(self.calls, count):
            redis.send(call)
        self.micros.append((redis.cpu_seconds() - before) * 1e6 / (count * self.plans))


def spread(values):
    low, median, high = statistics.quantiles(values, n=4)
    return f"{median:.2f} ({low:.2f}–{high:.2f})"


def ratio(row, base):
    return spread([micros / other for micros, other in zip(row.micros, base.micros)])


def print_table(head, rows):
    print(f"\n| {head} | Redis CPU µs per plan | × one limit |\n|---|---|---|")
    for row in rows:
        print(f"| {row.name} | {spread(row.micros)} | {ratio(row, rows[0])} |")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 60

    def plans(one_limit, five_limits):
        return [
            Row("one limit", "separate_values", 1, one_limit),
            Row("five limits", "separate_values", 5, five_limits),
            Row("five limits, one value", "one_value", 5, five_limits),
        ]

    batched, single = plans(32, 25), plans(1, 1)
    steps = {
        "receive": "function call and its keys",
        "read": "and one MGET",
        "write": "and a SETRANGE per key",
        "reply": "function call and the reply, no keys read",
    }
    steps = [[Row(name, step, 1, 32), Row(name, step, 5, 25)] for step, name in steps.items()]
    rows = batched + single + sum(steps, [])
    redis = Redis()
    try:
        redis.load("separate_values", separate_values())
        redis.load("one_value", one_value(5))
        for name, code in [("receive", RECEIVE), ("read", READ), ("write", WRITE), ("reply", REPLY)]:
            redis.load(name, code)
        for unused, row in enumerate(batched + single, SUBJECTS):
            row.check(redis, unused)
        for row in batched:
            row.fill(redis)
        for _ in range(rounds):
            for row in rows:
                row.measure(redis)
    finally:
        redis.process.kill()
        redis.process.wait()
    print_table("many plans in a call", batched)
    print_table("one plan in a call", single)
    print("\n| many plans in a call, Redis CPU µs per plan | one limit | five limits | five limits × decision, one limit |")
    print("|---|---|---|---|")
    for one, five in [*steps, batched[:2]]:
        name = "whole decision" if one is batched[0] else one.name
        print(f"| {name} | {spread(one.micros)} | {spread(five.micros)} | {ratio(five, batched[0])} |")
    together = batched[2]
    print(f"| whole decision, one value |  | {spread(together.micros)} | {ratio(together, batched[0])} |")


if __name__ == "__main__":
    main()
