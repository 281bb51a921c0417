# Sourced by the tests of train_fashion: they need the images of Debian's dataset-fashion-mnist.
data=${ZERO_FASHION_DATA:-/usr/share/datasets/fashion-mnist}
if [ ! -r "$data/t10k-images-idx3-ubyte.gz" ]; then
  echo "skipped: no images in $data (Debian: dataset-fashion-mnist)"
  exit 77
fi
