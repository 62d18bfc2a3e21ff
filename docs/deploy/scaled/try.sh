#!/bin/bash
# Runs on this machine, from Debian's packages and without a container, what compose.yaml runs in containers: haproxy, two
# gateways, Redis, two service nodes, PostgreSQL with a synchronous standby. Everything listens on 127.0.0.1 and has its
# files in one temporary directory; Ctrl+C ends and removes all of it. See docs/large-installations.md.
set -euo pipefail

usage='Usage: try.sh [--port N] [--people N] [--blocks s3://BUCKET…]

  --port N           the first of nine ports on 127.0.0.1; default 8780
  --people N         how many people have a login; default 4
  --blocks s3://…    keep contents in a bucket, as davgate service takes it, with the keys in AWS_ACCESS_KEY_ID and
                     AWS_SECRET_ACCESS_KEY; default: a folder that both nodes share'

port=8780 people=4 blocks=
while [ $# -gt 0 ]; do
    case $1 in
    --port | --people | --blocks)
        [ $# -gt 1 ] || { echo "try.sh: $1: a value is missing" >&2 && exit 2; }
        declare "${1#--}=$2" && shift 2
        ;;
    -h | --help) echo "$usage" && exit 0 ;;
    *) echo "try.sh: unknown option $1; try.sh --help lists them" >&2 && exit 2 ;;
    esac
done
for number in "$port" "$people"; do
    [[ $number =~ ^[1-9][0-9]*$ ]] || { echo "try.sh: $number is not a number above 0" >&2 && exit 2; }
done

# What is needed

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$PATH:/usr/sbin:/sbin
PATH=$PATH:$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2> /dev/null | sort -rV | head -n 1)
missing=
while read -r program package; do
    command -v "$program" > /dev/null || { echo "try.sh: $program is missing: apt install $package" >&2 && missing=yes; }
done << 'END'
node nodejs
haproxy haproxy
redis-server redis-server
postgres postgresql
setpriv util-linux
END
if [ -f "$here/../../../dist/cli/main.js" ]; then
    davgate=(node "$here/../../../dist/cli/main.js")
elif command -v davgate > /dev/null; then
    davgate=(davgate)
else
    echo 'try.sh: davgate is missing: run "npm ci && npm run build" in the checkout' >&2 && missing=yes
fi
[ -z "$missing" ] || exit 2

drive=127.0.0.1:$port service=127.0.0.1:$((port + 1)) redis_port=$((port + 6)) standby_port=$((port + 8))
gateways=([1]=127.0.0.1:$((port + 2)) [2]=127.0.0.1:$((port + 3)))
nodes=([1]=127.0.0.1:$((port + 4)) [2]=127.0.0.1:$((port + 5)))
export PGHOST=127.0.0.1 PGPORT=$((port + 7))
for one in $(seq "$port" $((port + 8))); do
    if (: < "/dev/tcp/127.0.0.1/$one") 2> /dev/null; then
        echo "try.sh: port $one is taken: give the first of nine free ones with --port" >&2 && exit 2
    fi
done

# Settings of the caller's own davgate and PostgreSQL.
for variable in "${!DAVGATE_@}" PGSERVICE PGOPTIONS PGUSER PGDATABASE PGPASSFILE; do unset "$variable"; done

# Processes

directory=$(mktemp -d "${TMPDIR:-/tmp}/davgate-try.XXXXXX")
mkdir -m 700 "$directory"/{logs,pids,postgresql,redis,gateways,nodes,blocks}
as_postgres=()
if [ "$(id -u)" = 0 ]; then
    # PostgreSQL does not run as root.
    as_postgres=(--reuid=postgres --regid=postgres --init-groups)
    chmod 711 "$directory"
    chown postgres: "$directory/postgresql"
fi

declare -A commands pids

# Starts a program under a name, in a session of its own that Ctrl+C does not reach; it ends with this script at the latest.
start() {
    local name=$1
    shift
    commands[$name]=$(printf '%q ' "$@")
    begin "$name"
}

begin() {
    local privileges=()
    [[ $1 != postgresql-* ]] || privileges=("${as_postgres[@]}")
    eval "exec setsid setpriv --pdeathsig TERM \"\${privileges[@]}\" ${commands[$1]}" \
        < /dev/null >> "$directory/logs/$1" 2>&1 &
    pids[$1]=$!
    # The shell then says nothing of its end.
    disown
    echo $! > "$directory/pids/$1"
}

# Ends programs by a signal, and after 20 s by SIGKILL.
finish() {
    local signal=$1 name tries
    shift
    for name; do [ -z "${pids[$name]-}" ] || kill -s "$signal" "${pids[$name]}" 2> /dev/null || true; done
    for name; do
        [ -n "${pids[$name]-}" ] || continue
        for ((tries = 0; tries < 200; tries++)); do
            kill -0 "${pids[$name]}" 2> /dev/null || break
            sleep 0.1
        done
        kill -s KILL "${pids[$name]}" 2> /dev/null || true
    done
}

finish_all() {
    trap '' INT TERM HUP
    echo 'Stopping …'
    finish TERM gateway-1 gateway-2
    finish TERM haproxy
    finish TERM node-1 node-2 redis
    # Fast shutdowns.
    finish INT postgresql-1
    finish INT postgresql-2
    rm -rf "$directory"
    echo "Stopped, and removed $directory."
}
trap finish_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# Waits for a program's readiness, which the command behind its name finds out.
await() {
    local name=$1 end=$((SECONDS + 600))
    shift
    until "$@" > /dev/null 2>&1; do
        if ! kill -0 "${pids[$name]}" 2> /dev/null || [ $SECONDS -gt $end ]; then
            echo "try.sh: $name does not start:" >&2
            tail -n 20 "$directory/logs/$name" >&2
            exit 1
        fi
        sleep 0.1
    done
}

answers() { (: < "/dev/tcp/${1/://}"); }

# Whether a request is answered with a status.
answers_with() {
    local status=$1 address=$2 path=$3 version found
    exec 3<> "/dev/tcp/${address/://}" || return
    printf 'GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$path" "$address" >&3
    read -r -t 10 version found _ <&3 || found=
    exec 3>&-
    [ "$version $found" = "HTTP/1.1 $status" ]
}

# PostgreSQL

password=$(od -An -N9 -tx1 /dev/urandom | tr -d ' \n')
secret=$(od -An -N18 -tx1 /dev/urandom | tr -d ' \n')
export PGPASSWORD=$secret PGDATA=$directory/postgresql/primary
printf '%s' "$secret" > "$directory/postgresql/secret"
postgres() { (cd "$directory/postgresql" && exec setpriv "${as_postgres[@]}" "$@") >> "$directory/logs/postgresql-setup" 2>&1; }
[ ${#as_postgres[@]} = 0 ] || chown postgres: "$directory/postgresql/secret"

echo 'Starting PostgreSQL with a standby …'
postgres initdb -U postgres -A scram-sha-256 --pwfile="$directory/postgresql/secret" -E UTF8 --locale=C.UTF-8
start postgresql-1 postgres -D "$PGDATA" -p "$PGPORT" -c listen_addresses=127.0.0.1 -c unix_socket_directories=
await postgresql-1 pg_isready
# The user postgres may not be able to read a checkout of root.
DATABASE_PASSWORD=$secret postgres sh -s < "$here/postgresql.sh"
postgres pg_basebackup -d 'user=standby application_name=standby' -D "$directory/postgresql/standby" -R -X stream -c fast
start postgresql-2 postgres -D "$directory/postgresql/standby" -p "$standby_port" \
    -c listen_addresses=127.0.0.1 -c unix_socket_directories=
await postgresql-2 pg_isready -p "$standby_port"

# Redis, people, nodes, gateways, haproxy

echo 'Starting Redis, two service nodes, two gateways and haproxy …'
cat > "$directory/redis.conf" << END
port $redis_port
bind 127.0.0.1
dir $directory/redis
requirepass $secret
save ""
appendonly yes
appendfsync always
END
start redis redis-server "$directory/redis.conf"
await redis answers "127.0.0.1:$redis_port"

# With the password in PGPASSWORD.
metadata=postgres://davgate@127.0.0.1:$PGPORT/davgate
DAVGATE_METADATA=$metadata API_URL=http://$service PEOPLE=$people PASSWORD=$password \
    "$here/people.sh" "$directory" "${davgate[@]}"
for number in 1 2; do
    start "node-$number" "${davgate[@]}" service --listen "${nodes[$number]}" --data "$directory/nodes/$number" \
        --metadata "$metadata" --blocks "${blocks:-$directory/blocks}" --public-url "http://$service" --trusted-proxy 127.0.0.1
done
for number in 1 2; do await "node-$number" answers "${nodes[$number]}"; done

export DAVGATE_REDIS_URL=redis://:$secret@127.0.0.1:$redis_port
export DRIVE_LISTEN=$drive SERVICE_LISTEN=$service DNS_SERVER=127.0.0.1:53
export GATEWAY_1=${gateways[1]} GATEWAY_2=${gateways[2]} NODE_1=${nodes[1]} NODE_2=${nodes[2]}
start haproxy haproxy -db -f "$here/haproxy.cfg"
# The service has nothing at its root. haproxy itself answers 503 until it has seen a node.
await haproxy answers_with 404 "$service" /
for number in 1 2; do
    start "gateway-$number" "${davgate[@]}" serve --listen "${gateways[$number]}" --config "$directory/davgate.yaml" \
        --data-dir "$directory/gateways/$number" --cache-dir "$directory/gateways/$number/cache" \
        --public-url "http://$drive" --trusted-proxy 127.0.0.1 --drain-seconds 3
done
for number in 1 2; do await "gateway-$number" answers_with 200 "${gateways[$number]}" /.davgate/readyz; done
await haproxy answers_with 200 "$drive" /.davgate/readyz

cat << END

The drive   http://$drive/
user        person-1$([ "$people" = 1 ] || echo " to person-$people")
password    $password

Open it in a browser, mount it (sudo mount -t davfs http://$drive/ /mnt), or use a command:
  curl -u person-1:$password -T FILE http://$drive/
  rclone lsl --webdav-url http://$drive/ --webdav-user person-1 --webdav-pass \$(rclone obscure $password) :webdav:

gateway-1   http://${gateways[1]}/
gateway-2   http://${gateways[2]}/
directory   $directory

Its folder pids has the process ids, logs the logs. Kill what you like: whatever ends is started again.
Ctrl+C stops everything and removes the directory.
END

# Starts what has ended again, as systemd would.
while :; do
    # In the background, so that a signal is not late.
    sleep 1 &
    wait $!
    for name in "${!pids[@]}"; do
        kill -0 "${pids[$name]}" 2> /dev/null && continue
        echo "$name has ended, and starts again."
        begin "$name"
    done
done
