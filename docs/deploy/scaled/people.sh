#!/bin/sh
# Makes accounts for two groups of people at the service, and FOLDER/davgate.yaml, the configuration of all gateways:
#   people.sh FOLDER COMMAND…
# COMMAND is how to run davgate. Variables: DAVGATE_METADATA, API_URL, PEOPLE (their number) and PASSWORD (of all of them).
# Each group has an account, and each person a folder in it. Does nothing if the file is there.
set -eu
folder=$1
shift
[ ! -e "$folder/davgate.yaml" ] || exit 0
umask 077
groups=2

# Prints what davgate says behind the words $1.
said() {
    what=$1
    shift
    output=$("$@")
    printf '%s\n' "$output" | sed -n "s/^$what  *//p"
}

key=$(said 'app key' "$@" service app create --name davgate --scopes all --status production)
{
    echo "api-url: $API_URL"
    echo 'drives:'
    group=1
    while [ "$group" -le "$groups" ]; do
        email=group-$group@example.org
        # It is there if an earlier run was cut off.
        "$@" service account create "$email" --permanent-delete yes > /dev/null 2>&1 ||
            "$@" service account show "$email" > /dev/null
        token=$(said 'access token' "$@" service token create --account "$email" --app "$key")
        echo "  group-$group: { token: '$token' }"
        group=$((group + 1))
    done
    hash=$(printf '%s\n' "$PASSWORD" | "$@" hash-password)
    echo 'users:'
    person=1
    while [ "$person" -le "$PEOPLE" ]; do
        name=person-$person
        echo "  - { name: $name, password-hash: '$hash', drive: group-$((person % groups + 1)), root: /People/$name }"
        person=$((person + 1))
    done
} > "$folder/davgate.yaml.new"
mv "$folder/davgate.yaml.new" "$folder/davgate.yaml"
