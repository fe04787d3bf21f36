#!/usr/bin/env bash
# Builds libavsg and installs it with its header, pkg-config file and CMake package:
#   bindings/c/install.sh [--prefix DIR] [--libdir DIR] [--destdir DIR] [--profile dev|release]
# The default prefix is /usr/local, and the default libdir is lib in the prefix. Packagers pass --destdir, a folder that
# precedes the prefix.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=/usr/local libdir=lib destdir= profile=release
fail() { printf '%s\n' "$1" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) prefix=${2:?"--prefix needs a folder"}; shift 2 ;;
    --libdir) libdir=${2:?"--libdir needs a folder"}; shift 2 ;;
    --destdir) destdir=${2:?"--destdir needs a folder"}; shift 2 ;;
    --profile) profile=${2:?"--profile needs dev or release"}; shift 2 ;;
    -h | --help) sed -n '2,5s/^# //p' "$0"; exit 0 ;;
    *) fail "argument is $1, but the options are --prefix, --libdir, --destdir and --profile; try --help" ;;
  esac
done
# The pkg-config file needs an absolute prefix, and the CMake package the way from the libraries to it.
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
libdir=${libdir#"$prefix"/}
case /$libdir/ in //* | */../*) fail "libdir is $libdir, but it must be in the prefix $prefix; pass lib64, for example" ;; esac
case $prefix/$libdir in
  *[\$\(\)\"]* | *$'\n'*) fail "prefix is $prefix/$libdir, but pkg-config passes no dollar, bracket, double quote or newline on; pass another folder" ;;
esac

cargo build --manifest-path "$here/so/Cargo.toml" --profile "$profile" --locked
target=${CARGO_TARGET_DIR:-$here/../../target}
case $profile in dev) built=$target/debug ;; *) built=$target/$profile ;; esac
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$here/../../Cargo.toml")
abi=$(sed -n 's/^#define AVSG_ABI_VERSION //p' "$here/include/avsg.h")
# The libraries that `rustc --print native-static-libs` lists on Linux with glibc.
static_libs='-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc'

to=$destdir$prefix lib=$destdir$prefix/$libdir
mkdir -p "$lib/pkgconfig" "$lib/cmake/avsg" "$to/include"
install -m 644 "$here/include/avsg.h" "$here/include/avsg.hpp" "$to/include"
install -m 755 "$built/libavsg.so" "$lib/libavsg.so.$abi"
ln -sf "libavsg.so.$abi" "$lib/libavsg.so"
# The archive has one object, which exports what the shared library exports: everything else, as Rust's standard library,
# is local in it, so that it can be linked beside other archives from Rust. It has no bitcode, which ar could not read.
mapfile -t exports < <(nm -D --defined-only "$built/libavsg.so" | sed 's/.* /-u/')
ld -r --force-group-allocation --gc-sections "${exports[@]}" -o "$lib/libavsg.o" "$built/libavsg.a"
objcopy --wildcard --keep-global-symbol='avsg_*' -R .llvmbc -R .llvmcmd "$lib/libavsg.o"
rm -f "$lib/libavsg.a"
ar rcs "$lib/libavsg.a" "$lib/libavsg.o"
rm "$lib/libavsg.o"
fill() {
  local text pc
  text=$(<"$here/package/$1")
  # What pkg-config takes for an escape or a comment.
  pc=${prefix//'\'/'\\'} text=${text//@PREFIX@/"${pc//'#'/'\#'}"}
  pc=${libdir//'\'/'\\'} text=${text//@LIBDIR@/"${pc//'#'/'\#'}"}
  text=${text//@UP@/"$(sed 's|[^/]*|..|g' <<<"$libdir")"} text=${text//@STATIC_LIBS@/"$3"}
  text=${text//@VERSION@/"$version"} text=${text//@ABI@/"$abi"} text=${text//@SERIES@/"${version%.*}"}
  printf '%s\n' "$text" >"$2"
}
fill avsg.pc.in "$lib/pkgconfig/avsg.pc" "$static_libs"
fill avsgConfig.cmake.in "$lib/cmake/avsg/avsgConfig.cmake" "${static_libs// /;}"
fill avsgConfigVersion.cmake.in "$lib/cmake/avsg/avsgConfigVersion.cmake" ''
printf 'avsg %s is in %s: include, %s, %s/pkgconfig, %s/cmake/avsg\n' "$version" "$to" "$libdir" "$libdir" "$libdir"
