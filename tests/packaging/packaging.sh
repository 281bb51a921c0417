#!/usr/bin/env bash
# One check of the installed library. usage: packaging.sh CHECK, with CC, CMAKE, BUILD, SOURCE and PREFIX in the environment.
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
libdir=$(dirname "$(find "$PREFIX" -name libzero.so.0 2>/dev/null | head -n 1)")
export LD_LIBRARY_PATH=$libdir PKG_CONFIG_PATH=$libdir/pkgconfig
# Open MPI refuses root and more ranks than cores unless told that both are meant; the last name is that of release 5.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
  PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

fail() {
  echo "packaging: $*"
  exit 1
}
skip() {
  echo "$*"
  exit 77
}

run_readme() {
  local last
  last=$("$1" | tail -n 1)
  [ "$last" = 'step 100  w = 2.00000' ] || fail "the README's program ended with '$last'"
  echo "$last"
}

install() {
  rm -rf "$PREFIX"
  "$CMAKE" --install "$BUILD" --prefix "$PREFIX"
  for path in bin/zero include/zero/zero.h share/libzero/mpi/CMakeLists.txt share/libzero/mpi/zero_mpi_module.c; do
    [ -f "$PREFIX/$path" ] || fail "$path was not installed"
  done
  [ -z "$(find "$PREFIX/share/libzero/mpi" -name '*nccl*')" ] || fail "the source of the MPI module has files of NCCL's"
}

build_id() { readelf -n "$1" | sed -n 's/.*Build ID: //p'; }

# What is installed is stripped; debuggers find the library of the build tree, which is not, by the
# same build ID.
stripped() {
  local library=$libdir/libzero.so.0 file nbytes count=0
  while read -r file; do
    count=$((count + 1))
    ! readelf -S -W "$file" | grep -q '\.debug_info' || fail "$file has debug information"
  done < <(find "$PREFIX" -type f \( -name '*.so*' -o -path '*/bin/*' \))
  [ "$count" -ge 2 ] || fail "$count libraries and programs were found"
  nbytes=$(stat -L -c %s "$library")
  echo "libzero.so has $nbytes bytes, that of the build tree $(stat -L -c %s "$BUILD/lib/libzero.so.0")"
  [ "$nbytes" -lt 10000000 ] || fail "libzero.so has $nbytes bytes, more than 10 MB"
  [ -n "$(build_id "$library")" ] && [ "$(build_id "$library")" = "$(build_id "$BUILD/lib/libzero.so.0")" ] ||
    fail "the library of the build tree has another build ID"
}

needed_libraries() {
  local needed
  needed=$(readelf -d "$libdir/libzero.so.0" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  echo "NEEDED:" $needed
  [ -n "$needed" ] || fail "no NEEDED entry was read"
  ! grep -vE '^(libc\.so\.6|libm\.so\.6|ld-linux[-a-z0-9_]*\.so\.[0-9]+)$' <<<"$needed" || fail "libzero.so needs more than the C library"
}

# It must find NCCL where it runs, and not where it was built.
nccl_module() {
  local module=$libdir/libzero_nccl.so dynamic
  [ -f "$module" ] || skip "libzero_nccl.so is not built: no NCCL was found"
  dynamic=$(readelf -d "$module")
  grep NEEDED <<<"$dynamic"
  grep -q 'NEEDED.*\[libnccl\.so\.2\]' <<<"$dynamic" || fail "libzero_nccl.so does not need libnccl.so.2"
  ! grep -vE '\[(libnccl\.so\.2|libc\.so\.6)\]' <<<"$(grep NEEDED <<<"$dynamic")" || fail "libzero_nccl.so needs more than NCCL"
  ! grep -E 'R(UN)?PATH' <<<"$dynamic" || fail "libzero_nccl.so names a path of the machine it was built on"
}

# The README shows a part of examples/readme.c, indented less.
readme_text() {
  awk '/^```c$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$SOURCE/README.md" >"$scratch/shown.c"
  sed 's/^  //' "$SOURCE/examples/readme.c" >"$scratch/readme.c"
  [ "$(wc -l <"$scratch/shown.c")" -ge 10 ] || fail "the README shows no program"
  [[ $(<"$scratch/readme.c") == *"$(<"$scratch/shown.c")"* ]] || {
    diff -u "$scratch/readme.c" "$scratch/shown.c"
    fail "the README's program is not a part of examples/readme.c"
  }
}

readme_by_pkg_config() {
  command -v pkg-config >/dev/null || skip "pkg-config is not installed"
  # Paths are quoted for a shell.
  eval "flags=($(pkg-config --cflags --libs zero))"
  "$CC" -std=c99 -Wall -Wextra -Wpedantic -Werror "$SOURCE/examples/readme.c" "${flags[@]}" -o "$scratch/readme"
  run_readme "$scratch/readme"
}

readme_by_find_package() {
  build_consumer zero::zero
  run_readme "$scratch/build/readme"
}

# build_consumer TARGET
build_consumer() {
  "$CMAKE" -S "$SOURCE/tests/packaging/consumer" -B "$scratch/build" -DCMAKE_C_COMPILER="$CC" -DCMAKE_PREFIX_PATH="$PREFIX" \
    -DREADME_PROGRAM="$SOURCE/examples/readme.c" -DCMAKE_C_FLAGS='-Wall -Wextra -Wpedantic -Werror' -DLIBZERO="$1"
  "$CMAKE" --build "$scratch/build"
}

needs_no_libzero() {
  ! readelf -d "$1" | grep 'NEEDED.*libzero' || fail "$1 needs libzero.so, though libzero.a was meant"
}

# The archive has no strong symbol outside of libzero's names, and no debug information.
static_library() {
  [ -f "$libdir/libzero.a" ] || fail "libzero.a was not installed"
  echo "libzero.a has $(stat -c %s "$libdir/libzero.a") bytes"
  nm -C -g --defined-only "$libdir/libzero.a" | awk '$2 ~ /^[TDBRC]$/ { sub(/^[^ ]+ [^ ]+ /, ""); print }' >"$scratch/symbols"
  [ "$(wc -l <"$scratch/symbols")" -ge 170 ] || fail "libzero.a has only $(wc -l <"$scratch/symbols") symbols"
  ! grep -vE '^(non-virtual thunk to |(vtable|typeinfo|typeinfo name|guard variable) for )?zero(_|::)' "$scratch/symbols" ||
    fail "libzero.a has symbols of other names"
  ! readelf -S -W "$libdir/libzero.a" 2>/dev/null | grep -q '\.debug_info' || fail "libzero.a has debug information"
}

static_by_find_package() {
  build_consumer zero::zero_static
  needs_no_libzero "$scratch/build/readme"
  run_readme "$scratch/build/readme"
}

# With the C library shared, modules still load; with -static none can, and the error says so.
static_by_pkg_config() {
  command -v pkg-config >/dev/null || skip "pkg-config is not installed"
  eval "flags=($(pkg-config --static --cflags --libs zero))"
  "$CC" "$SOURCE/examples/readme.c" "${flags[@]/-lzero/-l:libzero.a}" -o "$scratch/readme"
  needs_no_libzero "$scratch/readme"
  run_readme "$scratch/readme"
  if [ -f "$libdir/libzero_mpi.so" ] && command -v mpirun >/dev/null; then
    mpirun -n 2 "$scratch/readme" | grep '^step 100  w = 2.00000$' || fail "two MPI ranks of a program with libzero.a"
  fi
  "$CC" -static "$SOURCE/examples/readme.c" "${flags[@]}" -o "$scratch/static" 2>"$scratch/log" ||
    { cat "$scratch/log"; fail "linking with -static"; }
  run_readme "$scratch/static"
  ! OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 "$scratch/static" 2>"$scratch/error" || fail "a program linked with -static loaded the MPI module"
  cat "$scratch/error"
  grep -q '^ZERO_E_MODULE: .*linked with -static' "$scratch/error" || fail "the error does not say that -static is the cause"
}

# As a part of another project libzero leaves that project's build type alone and keeps its modules beside itself.
embedded() {
  "$CMAKE" -S "$SOURCE/tests/packaging/embedding" -B "$scratch/build" -DCMAKE_C_COMPILER="$CC" \
    -DLIBZERO_SOURCE="$SOURCE" -DCMAKE_BUILD_TYPE=
  cat "$scratch/build/folders"
  [ "$(sort -u "$scratch/build/folders" | wc -l)" -eq 1 ] || fail "libzero and its modules are built in different folders"
}

zero_command() {
  unset LD_LIBRARY_PATH
  local zero=$PREFIX/bin/zero code=0 lines
  "$zero" --version
  "$zero" --help >/dev/null
  "$zero" info | tee "$scratch/info"
  grep -q '^ranks: 1 on 1 host$' "$scratch/info" || fail "zero info does not tell its ranks"
  ZERO_KERNEL_TARGET=nosuch "$zero" info >"$scratch/out"
  grep -q 'not ZERO_KERNEL_TARGET=nosuch' "$scratch/out" || fail "zero info does not tell that ZERO_KERNEL_TARGET is ignored"
  for arguments in frobnicate '' 'info twice'; do
    code=0
    "$zero" $arguments >"$scratch/out" 2>"$scratch/error" || code=$?
    lines=$(wc -l <"$scratch/error")
    [ "$code" -eq 2 ] && [ "$lines" -eq 1 ] && [ ! -s "$scratch/out" ] || fail "zero $arguments: exit code $code, $lines lines of error"
  done
  [ -e /dev/full ] || return 0
  for arguments in --version info; do
    code=0
    "$zero" $arguments >/dev/full 2>"$scratch/error" || code=$?
    [ "$code" -eq 1 ] && [ -s "$scratch/error" ] || fail "zero $arguments to a full device: exit code $code, $(cat "$scratch/error")"
  done
}

# Each script tells what it is for and how it is used, and does nothing else.
scripts_help() {
  local script count=0
  for script in "$SOURCE"/tools/*.sh "$SOURCE"/bindings/go/set_module.sh; do
    timeout 10 bash "$script" --help >"$scratch/out" 2>"$scratch/error" || fail "$script --help ends with $?"
    [ ! -s "$scratch/error" ] && grep -q "^usage:" "$scratch/out" || fail "$script --help tells: $(cat "$scratch/out" "$scratch/error")"
    [ "$(wc -l <"$scratch/out")" -ge 2 ] || fail "$script --help is too short"
    count=$((count + 1))
  done
  [ "$count" -ge 10 ] || fail "only $count scripts were found"
  echo "$count scripts tell how they are used"
}

# With every MPI that brings a compiler wrapper and a launcher of its own.
mpi_module_alone() {
  local tried=0 wrapper launcher
  for wrapper in mpicc.openmpi mpicc.mpich mpicc; do
    launcher=${wrapper/mpicc/mpirun}
    command -v "$wrapper" >/dev/null && command -v "$launcher" >/dev/null || continue
    if [ "$wrapper" = mpicc ] && [ "$tried" -gt 0 ]; then continue; fi
    tried=$((tried + 1))
    "$CMAKE" -S "$PREFIX/share/libzero/mpi" -B "$scratch/$wrapper" -DCMAKE_C_COMPILER="$wrapper" -DCMAKE_PREFIX_PATH="$PREFIX" \
      -DCMAKE_INSTALL_PREFIX="$scratch/$wrapper-prefix"
    "$CMAKE" --build "$scratch/$wrapper"
    "$CMAKE" --install "$scratch/$wrapper"
    module=$(find "$scratch/$wrapper-prefix" -name libzero_mpi.so)
    ZERO_MPI_MODULE=$module "$launcher" -n 2 "$PREFIX/bin/zero" info | tee "$scratch/info"
    grep -q '^ranks: 2 on 1 host$' "$scratch/info" || fail "two ranks of $launcher do not see each other through the module of $wrapper"
  done
  [ "$tried" -gt 0 ] || skip "no mpicc with its mpirun is installed (Debian: openmpi-bin libopenmpi-dev)"
  echo "built alone and run with $tried MPI libraries"
}

# pack GENERATOR: into $scratch/packs.
pack() {
  [ -f "$BUILD/CPackConfig.cmake" ] || skip "packages are left out of this build: no gzip was found"
  cpack --config "$BUILD/CPackConfig.cmake" -G "$1" -B "$scratch/packs" -D CPACK_OUTPUT_FILE_PREFIX="$scratch/packs" >"$scratch/log" 2>&1 ||
    { cat "$scratch/log"; fail "cpack -G $1"; }
}

# It works wherever it is unpacked, and names no folder of the machine that made it. Device code names those of its sources, for profilers.
archive() {
  command -v pkg-config >/dev/null || skip "pkg-config is not installed"
  pack TGZ
  mkdir "$scratch/else where"
  tar -C "$scratch/else where" --strip-components=1 -xf "$scratch"/packs/libzero-*.tar.gz
  ! grep -rlF --exclude=libzero_cuda.so -e "$BUILD" -e "$SOURCE" "$scratch/else where" || fail "the archive names folders of this machine"
  libdir=$(dirname "$(find "$scratch/else where" -name libzero.so.0)")
  export LD_LIBRARY_PATH=$libdir PKG_CONFIG_PATH=$libdir/pkgconfig
  readme_by_pkg_config
  env -u LD_LIBRARY_PATH "$(find "$scratch/else where" -path '*/bin/zero')" info | grep '^ranks: 1 on 1 host$'
}

# Of the components: names, what they depend on, and the size of the base.
debian_packages() {
  local package names library
  command -v dpkg-shlibdeps >/dev/null || skip "dpkg-shlibdeps is not installed (Debian: dpkg-dev)"
  command -v dpkg-deb >/dev/null || skip "dpkg-deb is not installed"
  pack DEB
  for package in "$scratch"/packs/*.deb; do dpkg-deb -f "$package" Package Depends Installed-Size | paste -sd' '; done | tee "$scratch/told"
  names=$(sed -E 's/^Package: ([^ ]*).*/\1/' "$scratch/told" | sort | paste -sd' ')
  [[ $names =~ ^(libzero-cuda )?libzero-dev\ (libzero-mpi )?(libzero-nccl )?libzero0$ ]] || fail "the packages are: $names"
  grep -qE '^Package: libzero0 Depends: libc6 \(>= [0-9.]+\) ' "$scratch/told" || fail "libzero0 depends on more than the C library"
  [ "$(grep -c "libzero0 (= " "$scratch/told")" -eq "$(($(wc -l <"$scratch/told") - 1))" ] || fail "a package goes with any libzero0"
  dpkg-deb -x "$scratch"/packs/libzero0_*.deb "$scratch/base"
  [ "$(find "$scratch/base" -type f | wc -l)" -eq 2 ] && [ -f "$(find "$scratch/base" -type f -name 'libzero.so.0.*')" ] ||
    fail "libzero0 holds: $(find "$scratch/base" -type f)"
  library=$(find "$scratch/base" -type f -name 'libzero.so.0.*')
  ! readelf -S -W "$library" | grep -q '\.debug_info' || fail "libzero0 has debug information"
  echo "libzero0 takes $(du -sk "$scratch/base" | cut -f 1) KiB; the ten largest sections of its library:"
  size -A "$library" | awk '/^\./ { print $2, $1 }' | sort -rn | head -n 10
  if [ -f "$BUILD/docs/rendered" ] && grep -qx 'ZERO_DOCS:BOOL=ON' "$BUILD/CMakeCache.txt"; then
    dpkg-deb -c "$scratch"/packs/libzero-dev_*.deb | grep '/html/group_8h\.html$' >/dev/null || fail "libzero-dev has no documentation"
  fi
  [ "$(du -sk "$scratch/base" | cut -f 1)" -lt 10240 ] || fail "libzero0 takes $(du -sk "$scratch/base" | cut -f 1) KiB"
}

"$1"
