// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include <vlmest/tensor/dtype.hpp>

/// How one linear layer's weight[out, in] is stored, as values. What the tensors are, and what multiplies by them,
/// stands in the header of each method beside this one.
namespace vlmest {

/// AWQ: bits of each value, of `group` inputs a scale and a zero point; 0: of all inputs.
struct AwqWeight {
  int bits = 4;
  std::int64_t group = 128;
  bool gemv = false;  ///< packed along the inputs (version "gemv"), else along the outputs ("gemm")
};

/// GPTQ. With `reordered` (desc_act) inputs belong to groups in the order of their activations.
struct GptqWeight {
  int bits = 4;
  std::int64_t group = 128;  ///< 0: of all inputs
  bool reordered = false;
  bool symmetric = true;
};

/// bitsandbytes in 4 bits, nf4 or fp4: blocks of 64.
struct Bnb4Weight {
  bool twice = false;           ///< bnb_4bit_use_double_quant
  DType compute = DType::fp32;  ///< bnb_4bit_compute_dtype
};
/// LLM.int8().
struct Bnb8Weight {};

/// float8_e4m3fn.
struct Fp8Weight {
  enum class Scales : std::uint8_t { tensor, channel, block } scales = Scales::block;
  std::int64_t rows = 128, columns = 128;  ///< of a block
  DType scale = DType::fp32;
  bool static_activations = false;  ///< a scale of the layer's input is stored too
  bool upper_bound = false;         ///< fbgemm: a limit of the dynamic scales is stored too
  const char* scale_name = "weight_scale_inv";
  std::optional<DType> activations;  ///< what the layer's inputs are rounded to where transformers unpacks the weight
};

/// Integers with the same scale for `group` inputs (0: of a whole output channel; whole: of the whole weight).
struct IntWeight {
  int bits = 4;
  std::int64_t group = 128;
  bool whole = false;
  bool packed = true;     ///< in int32 words along the inputs, else one value an int8
  bool symmetric = true;  ///< else with zero points
  bool reordered = false;
  bool static_activations = false;
  bool transposed = false;           ///< EETQ keeps weight[in, out] and calls the scales weight_scales
  std::optional<DType> activations;  ///< what the layer's inputs are rounded to where transformers unpacks the weight
};

/// Two e2m1 values a byte. nvfp4: groups of 16 with an fp8 scale and a scale of the whole weight; mxfp4: groups of 32
/// with a power of two.
struct Fp4Weight {
  std::int64_t group = 16;
  bool nv = true;
  bool static_activations = false;   ///< a scale of the layer's input is stored too
  bool modelopt = false;             ///< with modelopt's names of the tensors
  std::optional<DType> activations;  ///< what the layer's inputs are rounded to where transformers unpacks the weight
};

using WeightStorage = std::variant<AwqWeight, GptqWeight, Bnb4Weight, Bnb8Weight, Fp8Weight, IntWeight, Fp4Weight>;

}  // namespace vlmest
