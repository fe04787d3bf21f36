#!/usr/bin/env bash
# Builds the package build_out/custom_opp_<os>_<arch>.run.
set -euo pipefail
cd "$(dirname "$0")"
if [ -z "${ASCEND_HOME_PATH:-}" ]; then
  echo "ASCEND_HOME_PATH is not set: source CANN's set_env.sh first" >&2
  exit 1
fi
cmake --preset default
cmake --build build_out --target binary package -j "$(nproc)"
# All cores of a kernel with SyncAll must start together, or it does not return. In a package the JSON beside an object says
# so, and the object itself, whose entry point is AvsgStep_<hash>_<key>_mix_aiv, need not.
find build_out -name 'AvsgStep_*.json' | while read -r json; do
  for stated in '"coreType":"MIX"' '"taskRation":"0:1"' '"intercoreSync":1'; do
    if ! tr -d ' \n\r\t' <"$json" | grep -qF "$stated"; then
      echo "$json does not state $stated, so AvsgStep could hang: build it with CANN 8.5 or newer" >&2
      exit 1
    fi
  done
done
ls build_out/custom_opp_*.run
