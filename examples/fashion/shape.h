/// @file shape: the sizes of the classifier's layers.
/// Knows nothing of how they are computed.
#ifndef FASHION_SHAPE_H
#define FASHION_SHAPE_H

#include "model.h"

enum {
  kKernel = 3, /* side of a convolution's kernel */
  kChannels1 = 8,
  kChannels2 = 16,
  kPooled2 = kImageSide / 4 * (kImageSide / 4) * kChannels2,
  kHidden = 64
};

#endif
