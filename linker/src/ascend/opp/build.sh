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
ls build_out/custom_opp_*.run
