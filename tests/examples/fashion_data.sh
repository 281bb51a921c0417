# Sourced by the tests of train_fashion: they need the images of Debian's dataset-fashion-mnist.
data=${ZERO_FASHION_DATA:-/usr/share/datasets/fashion-mnist}
if [ ! -r "$data/t10k-images-idx3-ubyte.gz" ]; then
  echo "skipped: no images in $data (Debian: dataset-fashion-mnist)"
  exit 77
fi

# few_test_images COUNT: $data becomes a folder, removed at the end, with all images to train on but COUNT to test with: classifying 10,000 takes
# longer than the few steps whose results are compared.
few_test_images() {
  few=$(mktemp -d) || exit 1
  trap 'rm -rf "$few"' EXIT
  ln -s "$data"/train-* "$few"
  # A file begins with its kind and its number of items; what follows is as it was.
  # shellcheck disable=SC2059
  count=$(printf '\\0\\0\\%03o\\%03o' $(($1 / 256)) $(($1 % 256)))
  { printf "\\0\\0\\10\\3$count"; gzip -dc "$data/t10k-images-idx3-ubyte.gz" | tail -c +9 | head -c $((8 + $1 * 784)); } >"$few/t10k-images-idx3-ubyte"
  { printf "\\0\\0\\10\\1$count"; gzip -dc "$data/t10k-labels-idx1-ubyte.gz" | tail -c +9 | head -c "$1"; } >"$few/t10k-labels-idx1-ubyte"
  data=$few
}
