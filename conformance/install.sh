# Sourced by clients: gets what they are made with.

# packages PACKAGE...: of Debian; those that are there cost nothing.
packages() {
    local missing=() package
    for package in "$@"; do
        dpkg -s "$package" > /dev/null 2>&1 || missing+=("$package")
    done
    [ "${#missing[@]}" -gt 0 ] || return 0
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
    {
        "${as_root[@]}" apt-get update -qq
        DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
    } >&2
}

# python_environment REQUIREMENTS: sets `python` to one that has them.
python_environment() {
    local venv=$CACHE/venv
    python=$venv/bin/python
    cmp -s "$1" "$venv/installed" && return
    python3 -c 'import ensurepip' 2>/dev/null || packages python3-venv
    python3 -m venv --clear "$venv" >&2
    "$python" -m pip install --quiet --disable-pip-version-check --only-binary :all: -r "$1" >&2
    cp "$1" "$venv/installed"
}

# node_environment FOLDER: a folder with package.json, package-lock.json and the program; sets `app` to its copy with modules.
node_environment() {
    app=$CACHE/app
    mkdir -p "$app"
    if ! cmp -s "$1/package-lock.json" "$app/installed"; then
        cp "$1/package.json" "$1/package-lock.json" "$app/"
        (cd "$app" && npm ci --no-audit --no-fund --loglevel=error "${@:2}") >&2
        cp "$1/package-lock.json" "$app/installed"
    fi
    cp "$1"/*.js "$app/"
}
