#!/usr/bin/env bash
# Builds libavsg and installs it with its header, pkg-config file and CMake package:
#   capi/install.sh [--prefix DIR] [--destdir DIR] [--profile dev|release]
# The default prefix is /usr/local. Packagers pass --destdir, a folder that precedes the prefix.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=/usr/local destdir= profile=release
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) prefix=${2:?"--prefix needs a folder"}; shift 2 ;;
    --destdir) destdir=${2:?"--destdir needs a folder"}; shift 2 ;;
    --profile) profile=${2:?"--profile needs dev or release"}; shift 2 ;;
    -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
    *) printf 'argument is %s, but the options are --prefix, --destdir and --profile; try --help\n' "$1" >&2; exit 2 ;;
  esac
done
# The pkg-config file needs an absolute prefix.
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac

cargo build --manifest-path "$here/so/Cargo.toml" --profile "$profile" --locked
target=${CARGO_TARGET_DIR:-$here/../target}
case $profile in dev) built=$target/debug ;; *) built=$target/$profile ;; esac
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$here/../Cargo.toml")
abi=$(sed -n 's/^#define AVSG_ABI_VERSION //p' "$here/../include/avsg.h")
# The libraries that `rustc --print native-static-libs` lists on Linux with glibc.
static_libs='-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc'

to=$destdir$prefix
mkdir -p "$to/lib/pkgconfig" "$to/lib/cmake/avsg" "$to/include"
install -m 644 "$here/../include/avsg.h" "$here/../include/avsg.hpp" "$to/include"
install -m 755 "$built/libavsg.so" "$to/lib/libavsg.so.$abi"
ln -sf "libavsg.so.$abi" "$to/lib/libavsg.so"
install -m 644 "$built/libavsg.a" "$to/lib/libavsg.a"
fill() {
  sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" -e "s|@ABI@|$abi|" \
    -e "s|@SERIES@|${version%.*}|" -e "s|@STATIC_LIBS@|$3|" "$here/package/$1" >"$2"
}
fill avsg.pc.in "$to/lib/pkgconfig/avsg.pc" "$static_libs"
fill avsgConfig.cmake.in "$to/lib/cmake/avsg/avsgConfig.cmake" "${static_libs// /;}"
fill avsgConfigVersion.cmake.in "$to/lib/cmake/avsg/avsgConfigVersion.cmake" ''
printf 'avsg %s is in %s: lib, include, lib/pkgconfig, lib/cmake/avsg\n' "$version" "$to"
