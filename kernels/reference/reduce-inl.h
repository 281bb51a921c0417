/// @file Reduction, one element: formats, combination and division. reduce.h states the formula.
#pragma once

#include "core/dtype.h"
#include "kernels/reference/float_bits.h"

#include <algorithm>
#include <concepts>
#include <type_traits>

namespace zero::kernels::reference {

struct F32 {
  using Element = float;
  using Value = float;
  ZERO_ELEMENT static Value load(Element element) { return element; }
  ZERO_ELEMENT static Element store(Value value) { return canonical(value); }
};

struct F64 {
  using Element = double;
  using Value = double;
  ZERO_ELEMENT static Value load(Element element) { return element; }
  ZERO_ELEMENT static Element store(Value value) { return canonical(value); }
};

struct F16 {
  using Element = uint16_t;
  using Value = float;
  ZERO_ELEMENT static Value load(Element element) { return from_f16(element); }
  ZERO_ELEMENT static Element store(Value value) { return to_f16(canonical(value)); }
};

struct Bf16 {
  using Element = uint16_t;
  using Value = float;
  ZERO_ELEMENT static Value load(Element element) { return from_bf16(element); }
  ZERO_ELEMENT static Element store(Value value) { return to_bf16(canonical(value)); }
};

/// `Wide` is 64 bits for avg; otherwise the element's own width, because wrapped arithmetic has the
/// same low bits in any width.
template <std::integral Stored, std::integral Wide = Stored>
struct Integer {
  using Element = Stored;
  using Value = Wide;
  ZERO_ELEMENT static Value load(Element element) { return element; }
  ZERO_ELEMENT static Element store(Value value) { return static_cast<Element>(value); }
};

template <std::floating_point Value>
ZERO_ELEMENT Value combine(ReduceOp op, Value a, Value b) {
  if (op == ReduceOp::prod) return a * b;
  if (op == ReduceOp::sum || op == ReduceOp::avg) return a + b;
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (a == b) return std::signbit(a) == (op == ReduceOp::min) ? a : b;  // decides between -0 and +0
  return (a < b) == (op == ReduceOp::min) ? a : b;
}

template <std::integral Value>
ZERO_ELEMENT Value combine(ReduceOp op, Value a, Value b) {
  using Unsigned = std::make_unsigned_t<Value>;
  switch (op) {
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    case ReduceOp::prod:
      return static_cast<Value>(uint64_t{static_cast<Unsigned>(a)} * static_cast<Unsigned>(b));
    case ReduceOp::sum:
    case ReduceOp::avg:
      break;
  }
  return static_cast<Value>(uint64_t{static_cast<Unsigned>(a)} + static_cast<Unsigned>(b));
}

/// True if the combined value is divided.
template <class Value>
ZERO_ELEMENT bool divides(ReduceOp op, double divisor) {
  const bool is_sum = op == ReduceOp::avg || (op == ReduceOp::sum && std::is_floating_point_v<Value>);
  return is_sum && divisor != 1;
}

/// True if a stored element is finite.
template <class Format>
ZERO_ELEMENT bool is_finite(typename Format::Element element) {
  if constexpr (std::is_floating_point_v<typename Format::Value>) return std::isfinite(Format::load(element));
  return true;
}

}  // namespace zero::kernels::reference
