# How the JVM clients get their jars and are compiled; each `run` of theirs sources this. What Maven fetches and javac
# writes goes to $CACHE, nothing to the tree.
# shellcheck shell=bash
set -euo pipefail
jvm=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${BOOTSTRAP:?the address of a broker}" "${CACHE:?a folder for downloads and builds}"
mkdir -p "$CACHE"
. "$jvm/../install.sh"

# One short-lived process after the other: the quick compiler alone and one thread for garbage.
java=(java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx256m -Dorg.slf4j.simpleLogger.defaultLogLevel=error)

install_jdk() {
    command -v javac >/dev/null && command -v mvn >/dev/null || packages default-jdk-headless maven
}

# jars DIR POM [-Dproperty=value…]: what the pom names lies in DIR afterwards; fetched again only when it changed.
jars() {
    local dir=$1 pom=$2 wanted
    shift 2
    install_jdk
    wanted="$(sha256sum < "$pom") $*"
    [ "$(cat "$dir/.complete" 2>/dev/null)" = "$wanted" ] && return
    rm -rf "$dir"
    timeout 600 mvn -q -B -f "$pom" "$@" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$dir" >&2
    echo "$wanted" > "$dir/.complete"
}

# compile CLASSES JARS SOURCES: all of a client's own code and the part it shares with the others.
compile() {
    rm -rf "$1"
    mkdir -p "$1"
    find "$3" "$jvm/src" -name '*.java' -exec \
        javac -proc:none -Xlint:all,-deprecation,-try,-processing,-classfile,-path,-options -Werror --release 17 -d "$1" -cp "$2/*" {} + >&2
}

# Apache Kafka whole, as its tools need it; in the place where it lies for every part of the suite. Sets $kafka.
kafka_jars() {
    kafka=${KAFKA_LIB:-$HOME/.cache/oncelog-peers/kafka-4.3.1}
    if [ -e "$kafka/.complete" ]; then
        install_jdk
    else
        jars "$kafka" "$jvm/../clients/kafka-tools/pom.xml"
    fi
}
