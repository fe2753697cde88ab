"""Calls Tollgate with redis-py and prints the replies. Usage: redis_py.py HOST PORT VERSION [TOKEN]"""

import sys

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

host, port, version, token = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), (sys.argv[4:] or [None])[0]


def connect(password, **options):
    return redis.Redis(host=host, port=port, protocol=version, password=password, **options)


def show(name, *values):
    print(name, *(value.decode() if isinstance(value, bytes) else value for value in values))


client = connect(token)
show("version", client.client_info()["resp"])
show("throttle", *client.execute_command("CL.THROTTLE", "user123", 15, 30, 60))
for _ in range(4):
    allowed, limit, remaining, retry_after, reset_after, rule, name = client.execute_command(
        "TOLLGATE.CHECK", "client=user123", "path=/search"
    )
    show("check", allowed, limit, remaining, int(retry_after > 0), int(reset_after > 0), rule, name)

# Without a transaction, because MULTI is not a command of Tollgate.
pipeline = client.pipeline(transaction=False)
for number in range(50):
    pipeline.echo(number)
    pipeline.execute_command("CL.THROTTLE", "pipeline", 49, 1, 86400)
replies = pipeline.execute()
show("pipeline", *(reply[2] if isinstance(reply, list) else reply for reply in replies))

keys = [b"\xff\x00\r\n", b"\xff\x00\r\n", b"\xfe\x00\r\n"]
show("binary", *(client.execute_command("CL.THROTTLE", key, 15, 1, 86400)[2] for key in keys))

for name, password in [("no token", None), ("wrong token", "wrong")] if token else []:
    try:
        # By default redis-py repeats a failed login ten times.
        connect(password, retry=Retry(NoBackoff(), 0)).execute_command("CL.THROTTLE", "user123", 15, 30, 60)
    except redis.RedisError as error:
        show(name, error)
try:
    client.get("user123")
except redis.ResponseError as error:
    show("unknown", error)
