#!/usr/bin/env bash
# Evaluates scalar expressions on a real Flink. usage: evaluate.sh IN.json OUT.json; see src/oracle/Expressions.java
#   FLINK_ORACLE_HEAP  heap of the JVM (default 1500m)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
classpath=$("$here/setup.sh" --quiet)
[ -z "${JAVA_HOME:-}" ] || PATH=$JAVA_HOME/bin:$PATH
opens=()
for package in java.lang java.time java.util java.util.concurrent; do
    opens+=("--add-opens=java.base/$package=ALL-UNNAMED")
done
exec java "-Xmx${FLINK_ORACLE_HEAP:-1500m}" -XX:+UseSerialGC "${opens[@]}" -cp "$classpath" oracle.Expressions "$@"
