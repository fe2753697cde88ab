"""Tollgate with redis-py: pip install redis. Usage: python.py HOST PORT [TOKEN]"""

import sys

import redis

host, port, token = sys.argv[1], int(sys.argv[2]), (sys.argv[3:] or [None])[0]
client = redis.Redis(host=host, port=port, password=token)

# 16 at once, then 30 per 60 seconds.
limited, limit, remaining, retry_after, reset_after = client.execute_command("CL.THROTTLE", "user123", 15, 30, 60)
print(f"limited={limited} limit={limit} remaining={remaining} retry_after={retry_after} reset_after={reset_after}")

# The policy of the server decides.
allowed, limit, remaining, retry_after_ms, *_ = client.execute_command("TOLLGATE.CHECK", "client=user123", "path=/search")
print(f"allowed={allowed} remaining={remaining}")
