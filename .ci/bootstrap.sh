#!/bin/sh
# Run a command in the project's virtual environment; first make or mend what it needs.
#
#     .ci/bootstrap.sh [--venv DIR] [--extras NAME,...] [--pin REQUIREMENT] [--java] [--postgres] COMMAND...
#
# What is there already costs well under a second and prints nothing. The rest is said in one
# line each, with the details beside the environment: .venv.log.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
venv=.venv extras=dev pin='' needs_java=no wants_postgres=no

say() { printf 'gpu_windows: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# Run a command with its output in the log; if it fails, show the end of the log.
quietly() {
    printf '\n+ %s\n' "$*" >>"$log"
    "$@" >>"$log" 2>&1 || { status=$?; tail -n 15 "$log" >&2; return "$status"; }
}

# --- the two links --------------------------------------------------------------------------------
# A checkout without symbolic links (a zip file, Windows) has small text files in their place.
mend_link() {
    link=gpu_windows/$1
    [ -L "$link" ] && [ -d "$link" ] && return
    [ -d "$link" ] && [ ! -e "$1" ] && return # an sdist, which holds folders and no links
    [ -d "$link" ] && die "$link is a folder and must be a link to ../$1: move it away and run this again"
    [ -d "$1" ] || die "the folder $1 is missing: the checkout is not complete"
    say "mending the link $link -> ../$1"
    rm -f "$link"
    ln -s "../$1" "$link" || die "no symbolic links on this file system: move the checkout to one that has them"
}

# --- Debian's packages ------------------------------------------------------------------------------
can_apt() { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; }

# Install the first package of the list that can be had.
apt_install() {
    options='-o DPkg::Lock::Timeout=300 -y -q --no-install-recommends'
    apt-get $options update >>"$log" 2>&1 || : # what is known may do
    for package; do
        printf '\n+ apt-get install %s\n' "$package" >>"$log"
        DEBIAN_FRONTEND=noninteractive apt-get $options install "$package" >>"$log" 2>&1 </dev/null && return
    done
    tail -n 15 "$log" >&2
    return 1
}

# --- Python ---------------------------------------------------------------------------------------
python_is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        python_is_new_enough "$python" && return
    done
    die "no Python 3.11 or newer${PYTHON:+ at PYTHON=$PYTHON}: install one (Debian 12, Ubuntu 24.04 and later have it), or set PYTHON"
}

# Debian's Python makes no virtual environments without a package of its own.
make_venv() {
    find_python
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    say "making $venv with Python $version (some seconds)"
    rm -rf "$venv"
    printf '\n+ %s -m venv %s\n' "$python" "$venv" >>"$log"
    "$python" -m venv "$venv" >>"$log" 2>&1 && return
    rm -rf "$venv"
    can_apt || die "$python cannot make virtual environments: install the package python3-venv (apt-get install python3-venv)"
    say "installing python3-venv (about half a minute)"
    apt_install "python$version-venv" python3-venv &&
        quietly "$python" -m venv "$venv" ||
        die "$python cannot make virtual environments, nor could python3-venv be installed: see $log"
}

has_venv() { "$venv/bin/python" -c 'import pip' 2>/dev/null && python_is_new_enough "$venv/bin/python"; }

# Install the package and its extras, again only if something that decides about them changed. Without
# bytecode: of 14,000 modules few are imported, and Python compiles those when they are.
install_package() {
    key=$({ cat pyproject.toml && printf '%s %s' "$root" "$pin"; } | cksum)
    for stamp in "$venv/installed-dev" "$venv/installed-$extras"; do # dev holds all the others
        [ "$(cat "$stamp" 2>/dev/null)" = "$key" ] && has_venv && return
    done
    has_venv || make_venv
    say "installing gpu_windows[$extras] into $venv (1 to 6 minutes the first time)"
    quietly "$venv/bin/python" -m pip install --quiet --no-compile --upgrade pip &&
        quietly "$venv/bin/python" -m pip install --quiet --no-compile --editable ".[$extras]" ${pin:+"$pin"} ||
        die "pip failed: the lines above and $log say why"
    printf '%s' "$key" >"$stamp"
}

# --- Java -----------------------------------------------------------------------------------------
# PySpark refuses a runtime without jdk.incubator.vector.
java_is_usable() {
    modules=$("$1" --list-modules 2>/dev/null) || return 1
    major=$(printf '%s\n' "$modules" | sed -n 's/^java\.base@\([0-9]*\).*/\1/p')
    [ "${major:-0}" -ge 17 ] && printf '%s\n' "$modules" | grep -q '^jdk\.incubator\.vector@'
}

find_java() {
    for java in "${JAVA_HOME:-/nowhere}/bin/java" java /usr/lib/jvm/*/bin/java; do
        java_is_usable "$java" && return
    done
    return 1
}

need_java() {
    if ! find_java; then
        can_apt || die "no Java 17 or newer with jdk.incubator.vector: install one (apt-get install openjdk-17-jre-headless), or set JAVA_HOME"
        say "installing a Java runtime (about a minute)"
        apt_install openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless && find_java ||
            die "no Java 17 or newer, nor could one be installed: see $log"
    fi
    # `java` may be a shim (jenv, asdf, alternatives), so it is asked where it lives.
    home=$("$java" -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java\.home = //p')
    [ -z "${JAVA_HOME:-}" ] || [ "$java" = "$JAVA_HOME/bin/java" ] ||
        say "JAVA_HOME=$JAVA_HOME has no Java 17 or newer with jdk.incubator.vector; taking $home"
    export JAVA_HOME="$home"
}

# --- PostgreSQL: its tests are skipped where there is none ------------------------------------------
has_postgres() { command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }

want_postgres() {
    has_postgres && return
    can_apt || { say "no PostgreSQL: its tests are skipped (apt-get install postgresql)"; return; }
    say "installing PostgreSQL (about a minute)"
    apt_install postgresql || say "PostgreSQL could not be installed: its tests are skipped"
}

while [ $# -gt 0 ]; do
    case $1 in
        --venv) venv=$2; shift 2 ;;
        --extras) extras=$2; shift 2 ;;
        --pin) pin=$2; shift 2 ;;
        --java) needs_java=yes; shift ;;
        --postgres) wants_postgres=yes; shift ;;
        --) shift; break ;;
        -*) die "unknown option $1" ;;
        *) break ;;
    esac
done

log=$root/$venv.log # of each environment its own: `make --jobs` runs several of these
: >"$log"
mend_link kernels
mend_link spark_glue
install_package
[ "$needs_java" = no ] || need_java
[ "$wants_postgres" = no ] || want_postgres

# The environment of the command. Workers take `python3` from PATH unless told; a SPARK_HOME or
# PYTHONPATH of another Spark would win over the PySpark just installed; and a host name that does
# not resolve, as in many containers, would stop Spark. Many containers also forbid Python to write
# bytecode, which every process that Spark and the tests start would then compile again.
unset SPARK_HOME PYTHONHOME PYTHONPATH PYTHONDONTWRITEBYTECODE
export VIRTUAL_ENV="$root/$venv" PATH="$root/$venv/bin:$PATH"
export PYSPARK_PYTHON="$root/$venv/bin/python" PYSPARK_DRIVER_PYTHON="$root/$venv/bin/python"
export SPARK_LOCAL_IP="${SPARK_LOCAL_IP:-127.0.0.1}"
exec "$@"
