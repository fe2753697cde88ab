#!/usr/bin/env python3
"""Compares two designs for several regions by simulation; prints JSON.

usage: simulate_regions.py [SEED]

Three regions are 100 ms apart (round trip). Each of 40 keys has a token bucket of 1,000/s with a burst of 2,000.

- home: the bucket of a key is in one region. The others lease from it as nodes do (docs/REDIS.md, Leases), and wait a
  round trip for each request without a lease.
- split: each region has a part of each bucket, by its part of the demand of the last seconds. Once a second, regions whose
  part falls give it up; a round trip later, the others get it, without tokens.

Every admission is debited from one bucket of the whole limit, which must never overflow.
"""

import json
import math
import random
import sys

STEP = 0.01
SECONDS = 60
REGIONS = 3
KEYS = 40
RATE, BURST = 1000.0, 2000.0
ROUND_TRIP = 0.1
# The hold of a lease: an eighth of the refill time.
HOLD = BURST / RATE / 8
# The least part of a region, so that it can begin to serve a key without a round trip.
LEAST_PART = 0.02


class Bucket:
    """A token bucket by its deficit."""

    def __init__(self, rate=RATE, burst=BURST, deficit=0.0):
        self.rate, self.burst, self.deficit, self.time = rate, burst, deficit, 0.0

    def refill(self, now):
        self.deficit = max(0.0, self.deficit - self.rate * (now - self.time))
        self.time = now

    def left(self, now):
        self.refill(now)
        return math.floor(self.burst - self.deficit + 1e-9)

    def take(self, now, wanted):
        taken = max(0, min(wanted, self.left(now)))
        self.deficit += taken
        return taken

    def lease(self, now, wanted):
        """Takes a lease as the product does: d' = max(d, c * hold) + n, at most a quarter of what is left."""
        refilled = self.rate * HOLD
        amount = min(wanted, int(min(self.left(now), self.burst - refilled)) // 4)
        if amount < 2:
            return 0
        self.deficit = max(self.deficit, refilled) + amount
        return amount


class Check:
    """All admissions of a key, against its limit, and what an ideal store would admit."""

    def __init__(self):
        self.all, self.ideal = Bucket(), Bucket()
        self.admitted = self.possible = self.violations = 0

    def step(self, now, demand, admitted):
        self.possible += self.ideal.take(now, demand)
        self.admitted += admitted
        self.all.refill(now)
        self.all.deficit += admitted
        self.violations += self.all.deficit > self.all.burst + 1e-6


class Home:
    """A key in region 0, with leases in the others."""

    def __init__(self):
        self.bucket = Bucket()
        self.leases = [[] for _ in range(REGIONS)]
        self.recent = [0.0] * REGIONS
        self.requests = []
        self.pause_until = [0.0] * REGIONS
        self.calls = self.waited = 0

    def step(self, now, demand):
        admitted = self.run_requests(now)
        admitted += self.bucket.take(now, demand[0])
        for region in range(1, REGIONS):
            admitted += self.serve(now, region, demand[region])
        return admitted

    def run_requests(self, now):
        """Runs the calls that have reached the home region."""
        admitted, left = 0, []
        for at, region, single, wanted, begun in self.requests:
            if at > now:
                left.append((at, region, single, wanted, begun))
                continue
            admitted += self.bucket.take(now, single)
            amount = self.bucket.lease(now, wanted) if wanted else 0
            if amount:
                # Usable when the reply arrives, until the hold has passed since the request.
                self.leases[region].append([begun + ROUND_TRIP, begun + HOLD, amount, amount])
            elif wanted:
                self.pause_until[region] = now + HOLD / 4
        self.requests = left
        return admitted

    def serve(self, now, region, demand):
        self.recent[region] += (demand - self.recent[region] * STEP / HOLD)
        live = [lease for lease in self.leases[region] if lease[1] > now and lease[2] > 0]
        self.leases[region] = live
        admitted = 0
        for lease in live:
            if lease[0] <= now:
                taken = min(demand - admitted, lease[2])
                lease[2] -= taken
                admitted += taken
        single = demand - admitted
        is_short = all(lease[2] <= lease[3] / 4 for lease in live)
        is_asking = any(request[1] == region and request[3] for request in self.requests)
        wanted = 0
        if is_short and not is_asking and now >= self.pause_until[region]:
            if self.recent[region] >= 16:
                wanted = int(self.recent[region] / 2)
        if single or wanted:
            self.waited += single
            self.calls += single + (1 if wanted and not single else 0)
            self.requests.append((now + ROUND_TRIP / 2, region, single, wanted, now))
        return admitted


class Split:
    """A key with a part in each region."""

    def __init__(self):
        parts = [1.0 / REGIONS] * REGIONS
        self.parts = parts
        self.buckets = [Bucket(RATE * part, BURST * part) for part in parts]
        self.recent = [0.0] * REGIONS
        self.raises = None
        self.next_split = 1.0
        self.calls = self.waited = 0

    def resize(self, now, region, part):
        bucket = self.buckets[region]
        left = bucket.left(now)
        bucket.rate, bucket.burst = RATE * part, BURST * part
        # What exceeds a smaller bucket is lost, and a larger one does not begin with more tokens.
        bucket.deficit = max(0.0, bucket.burst - left)
        self.parts[region] = part

    def step(self, now, demand):
        if self.raises and now >= self.raises[0]:
            for region, part in self.raises[1]:
                self.resize(now, region, part)
            self.raises = None
        for region in range(REGIONS):
            self.recent[region] += demand[region] - self.recent[region] * STEP
        if now >= self.next_split:
            self.next_split = now + 1.0
            self.split(now)
        return sum(self.buckets[r].take(now, demand[r]) for r in range(REGIONS))

    def split(self, now):
        self.calls += REGIONS
        total = sum(self.recent) or 1.0
        spare = 1.0 - REGIONS * LEAST_PART
        wanted = [LEAST_PART + spare * recent / total for recent in self.recent]
        raises = []
        for region, part in enumerate(wanted):
            if part <= self.parts[region]:
                self.resize(now, region, part)
            else:
                raises.append((region, part))
        # The parts that fall were given up before the round trip.
        self.raises = (now + ROUND_TRIP, raises)


def poisson(generator, mean):
    limit, count, product = math.exp(-mean), 0, generator.random()
    while product > limit:
        count += 1
        product *= generator.random()
    return count


def weights(generator, pattern, now, state):
    """Returns the part of the demand of each region."""
    if pattern == "steady":
        return [0.5, 0.3, 0.2]
    if now >= state["until"]:
        state["until"] = now + generator.uniform(5, 15)
        state["region"] = generator.randrange(REGIONS)
    return [0.9 if region == state["region"] else 0.05 for region in range(REGIONS)]


def simulate(design, pattern, load, seed):
    generator = random.Random(f"{seed} {pattern} {load}")
    totals = {"violations": 0, "admitted": 0, "possible": 0, "demand": 0, "calls": 0, "waited": 0}
    for _ in range(KEYS):
        key, check, state = design(), Check(), {"until": 0.0, "region": 0}
        for step in range(int(SECONDS / STEP)):
            now = step * STEP
            parts = weights(generator, pattern, now, state)
            demand = [poisson(generator, RATE * load * part * STEP) for part in parts]
            check.step(now, sum(demand), key.step(now, demand))
            totals["demand"] += sum(demand)
        for name in ("violations", "admitted", "possible"):
            totals[name] += getattr(check, name)
        totals["calls"] += key.calls
        totals["waited"] += key.waited
    return {
        "design": design.__name__.lower(),
        "demand": pattern,
        "load": load,
        "decisions": totals["demand"],
        "violations": totals["violations"],
        "used": round(totals["admitted"] / totals["possible"], 4),
        "waits_a_round_trip": round(totals["waited"] / totals["demand"], 4),
        "calls_per_key_and_second": round(totals["calls"] / KEYS / SECONDS, 1),
    }


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    runs = [
        simulate(design, pattern, load, seed)
        for pattern in ("steady", "moving")
        for load in (0.5, 0.9, 2.0)
        for design in (Home, Split)
    ]
    print(json.dumps({"seed": seed, "runs": runs}, indent=1))
    sys.exit(any(run["violations"] for run in runs))


if __name__ == "__main__":
    main()
