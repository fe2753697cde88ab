#!/usr/bin/env bash
# Creates the secrets for compose.yaml in deploy/docker/secrets/, or in the given directory. Keeps existing files.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/secrets}

mkdir -p "$out"
# Only the owner can enter the directory. The files are world-readable, because the container runs as another user.
chmod 0700 "$out"
secret() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
write() {
    [[ -e $out/$1 ]] || cat >"$out/$1"
    chmod 0444 "$out/$1"
}

for name in check-token read-token admin-token; do
    secret | write "$name"
done

# Creates both files together: they contain the same password.
if [[ ! -e $out/redis-url || ! -e $out/redis-acl ]]; then
    acl=$here/../../crates/tollgate-redis/redis.acl
    grep -q '^user tollgate on ' "$acl" || {
        echo "deploy/docker/secrets.sh: $acl has no user tollgate" >&2
        exit 1
    }
    rm -f "$out/redis-url" "$out/redis-acl"
    password=$(secret)
    digest=$(printf %s "$password" | sha256sum | cut -d' ' -f1)
    printf 'redis://tollgate:%s@redis:6379' "$password" | write redis-url
    {
        echo "user default off"
        sed -n "s/^user tollgate on /user tollgate on #$digest /p" "$acl"
    } | write redis-acl
fi
