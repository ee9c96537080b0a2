# What the checks of dashboards and alerts need. To be sourced: it sets `cache`, `python` and `program`, the broker.
# The broker is ONCELOG_BIN, or is built: the dev profile's with --debug, else the release one.
# shellcheck shell=bash

cache=${ONCELOG_OBSERVE_CACHE:-$HOME/.cache/oncelog-observe}
python=$cache/venv/bin/python
here=conformance/observe

# apt_install PACKAGE...: those that are missing.
apt_install() {
    local missing=() package as_root=()
    for package; do
        dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
    done
    [ "${#missing[@]}" -gt 0 ] || return 0
    [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
    "${as_root[@]}" apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# venv: Python with the packages of requirements.txt, made anew when they change.
venv() {
    mkdir -p "$cache"
    if ! cmp -s "$here/requirements.txt" "$cache/venv/requirements.txt"; then
        python3 -c 'import ensurepip' 2>/dev/null || apt_install python3-venv
        python3 -m venv --clear "$cache/venv"
        "$python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
        cp "$here/requirements.txt" "$cache/venv/"
    fi
}

# modules NAME: copies conformance/observe/NAME to the cache and installs its modules there, anew when they change.
modules() {
    local folder=$cache/$1
    mkdir -p "$folder"
    if ! cmp -s "$here/$1/package-lock.json" "$folder/package-lock.json" || [ ! -d "$folder/node_modules" ]; then
        cp "$here/$1/package.json" "$here/$1/package-lock.json" "$folder/"
        (cd "$folder" && npm ci --silent --no-audit --no-fund)
    fi
    local file
    for file in "$here/$1"/*; do
        # What is made from a file is made anew when the file has changed.
        if ! cmp -s "$file" "$folder/${file##*/}"; then
            rm -f "$folder/schemas.json"
            cp "$file" "$folder/"
        fi
    done
}

# broker PROFILE: sets `program`.
broker() {
    program=${ONCELOG_BIN:-}
    [ -z "$program" ] || return 0
    if [ "$1" = debug ]; then
        cargo build --quiet --locked --bin oncelog
    else
        cargo build --quiet --locked --release --bin oncelog
    fi
    program=${CARGO_TARGET_DIR:-target}/$1/oncelog
}
