/// @file Quantized parameters: encoding as 8-bit codes with a scale per line, decoding, and the
/// agreement of masters and codes. The threads of a line find its largest magnitude together. 5
/// bytes per f32 element must move, also for the agreement.
#include "kernels/cuda/entries.h"
#include "kernels/cuda/over_quads.h"
#include "kernels/cuda/slots.h"

namespace zero::kernels::cuda {
namespace {

constexpr int64_t kPerBlock = kThreads * kQuad;
constexpr int kBlockLines = static_cast<int>(kPerBlock / kLine);
static_assert(kPerBlock % kLine == 0);

/// The elements of a thread, and their line within the block.
struct InLine {
  Span span;
  int line;
};

ZERO_DEVICE InLine elements_of(const Place &place, int64_t count) {
  const int64_t index = place.block * kPerBlock + place.thread * kQuad;
  const int64_t left = count - index;
  return {{index, left >= kQuad ? kQuad : left > 0 ? static_cast<int>(left) : 0}, static_cast<int>(place.thread * kQuad / kLine)};
}

struct Encoding {
  struct Registers {
    Quad<float> value;
  };
  struct Shared {
    uint32_t largest[kBlockLines];
  };
  static constexpr int kPhases = 3;

  Elements codes;
  const void *values;
  DType dtype;
  int64_t count;
  const StepState *known;  ///< nullptr: encodes even if the step was skipped

  template <int phase>
  ZERO_DEVICE void run(const Place &place, Registers &registers, Shared &shared) const {
    const auto [span, line] = elements_of(place, known != nullptr && known->skips != 0 ? 0 : count);
    if constexpr (phase == 0) {
      if (place.thread < kBlockLines) shared.largest[place.thread] = 0;
    } else if constexpr (phase == 1) {
      if (span.count > 0) registers.value = load_wide(values, dtype, span.index, span.count);
      raise_to(shared.largest[line], largest_of(registers.value, span.count));
    } else if (span.count > 0) {
      const float scale = scale_from(codes, shared.largest[line]);
      put_codes(codes, span, scale, codes_of(registers.value, scale, dtype_of(codes), nullptr));
    }
  }
};

struct Decoding {
  void *out;
  DType dtype;
  Elements codes;

  ZERO_DEVICE void operator()(int64_t index, int count) const {
    store_narrow(out, dtype, index, count, load_decoded(codes, {index, count}));
  }
};

struct Agreeing {
  struct Registers {
    Quad<float> master;
  };
  struct Shared {
    uint32_t largest[kBlockLines];
    /// Not 0: encoding the masters gives other codes or another scale.
    int32_t other_codes[kBlockLines];
    int32_t other_values[kBlockLines];  ///< not 0: decoding the codes gives other masters
  };
  static constexpr int kPhases = 4;

  float *masters;
  Elements codes;
  int64_t count;
  bool masters_lead;

  template <int phase>
  ZERO_DEVICE void run(const Place &place, Registers &registers, Shared &shared) const {
    const auto [span, line] = elements_of(place, count);
    if constexpr (phase == 0) {
      if (place.thread < kBlockLines) {
        shared.largest[place.thread] = 0;
        shared.other_codes[place.thread] = 0;
        shared.other_values[place.thread] = 0;
      }
    } else if constexpr (phase == 1) {
      if (span.count > 0) registers.master = load<float>(masters, span.index, span.count);
      raise_to(shared.largest[line], largest_of(registers.master, span.count));
    } else if constexpr (phase == 2) {
      if (span.count == 0) return;
      if (!is_encoded(span, shared.largest[line], registers.master)) raise(&shared.other_codes[line]);
      if (!is_decoded(span, registers.master)) raise(&shared.other_values[line]);
    } else if (span.count > 0 && shared.other_codes[line] != 0 && shared.other_values[line] != 0) {
      if (masters_lead) {
        const float scale = scale_from(codes, shared.largest[line]);
        put_codes(codes, span, scale, codes_of(registers.master, scale, dtype_of(codes), nullptr));
      } else {
        store(masters, span.index, span.count, load_decoded(codes, span));
      }
    }
  }

  /// True if encoding these masters gives the line's scale and codes.
  ZERO_DEVICE bool is_encoded(const Span &span, uint32_t largest, const Quad<float> &master) const {
    const float scale = scale_from(codes, largest);
    const Quad<uint8_t> made = codes_of(master, scale, dtype_of(codes), nullptr);
    const Quad<uint8_t> given = load<uint8_t>(codes.data, span.index, span.count);
    bool same = std::bit_cast<uint32_t>(scale) == std::bit_cast<uint32_t>(codes.scales[span.index / kLine]);
    for (int i = 0; i < kQuad; ++i) same = same && (i >= span.count || made.element[i] == given.element[i]);
    return same;
  }

  /// True if the codes decode to these masters, bit by bit.
  ZERO_DEVICE bool is_decoded(const Span &span, const Quad<float> &master) const {
    const Quad<float> value = load_decoded(codes, span);
    bool same = true;
    for (int i = 0; i < kQuad; ++i)
      same = same && (i >= span.count || std::bit_cast<uint32_t>(value.element[i]) == std::bit_cast<uint32_t>(master.element[i]));
    return same;
  }
};

template <class Kernel>
int32_t over_lines(int64_t device, void *stream, int64_t count, const Kernel &kernel) {
  return launch(device, stream, (count + kPerBlock - 1) / kPerBlock, kernel);
}

}  // namespace

int32_t encode(int64_t device, const Elements *codes, const void *values, int64_t dtype, int64_t count, const StepState *run, void *stream) {
  return over_lines(device, stream, count, Encoding{*codes, values, DType(dtype), count, run});
}

int32_t decode(int64_t device, void *out, int64_t dtype, const Elements *codes, int64_t count, void *stream) {
  return over_quads(device, stream, count, Decoding{out, DType(dtype), *codes});
}

int32_t agree(int64_t device, float *masters, const Elements *codes, int64_t count, int32_t masters_lead, void *stream) {
  return over_lines(device, stream, count, Agreeing{masters, *codes, count, masters_lead != 0});
}

}  // namespace zero::kernels::cuda
