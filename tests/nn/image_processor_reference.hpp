// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

// Token counts that the processors of transformers 5.17 give with the settings of released checkpoints, per family
// and picture size. `odd_sizes` holds the same for awkward sizes (tiny, narrow, one pixel beside a border, beyond the
// pixel limits), -1 where the processor refuses.
namespace vlmest::reference {

struct Size {
  std::int64_t height, width;
};

using Counts = std::array<std::int64_t, 10>;  ///< one per entry of `sizes`

inline constexpr std::array<Size, 10> sizes{{{224, 224},
                                             {336, 336},
                                             {448, 448},
                                             {480, 640},
                                             {640, 480},
                                             {720, 1280},
                                             {1024, 1024},
                                             {1080, 1920},
                                             {300, 1200},
                                             {2160, 3840}}};

inline constexpr Counts llava{576, 576, 576, 576, 576, 576, 576, 576, 576, 576};
inline constexpr Counts llava_next{1176, 1176, 2928, 2340, 2352, 1948, 2928, 1948, 1890, 1948};
inline constexpr Counts llava_onevision{1485, 1485, 3699, 2929, 2943, 5967, 7371, 7269, 3672, 7317};
inline constexpr Counts qwen2_vl_small{64, 144, 256, 391, 391, 1196, 1225, 1222, 473, 1222};
inline constexpr Counts qwen2_vl{64, 144, 256, 391, 391, 1196, 1369, 2691, 473, 10549};
inline constexpr Counts qwen3_vl{64, 100, 196, 300, 300, 880, 1024, 2040, 342, 8160};
inline constexpr Counts glm4v{64, 144, 256, 391, 391, 1196, 1369, 2691, 473, 7360};
inline constexpr Counts internvl{256, 256, 256, 3328, 3328, 2304, 2560, 2304, 1280, 2304};
inline constexpr Counts internvl_all{258, 258, 258, 3330, 3330, 2306, 2562, 2306, 1282, 2306};
inline constexpr Counts aya_vision{169, 169, 169, 2197, 2197, 1521, 1690, 1521, 845, 1521};
inline constexpr Counts aya_vision_all{172, 172, 172, 2212, 2212, 1532, 1702, 1532, 852, 1532};
inline constexpr Counts gemma3{256, 256, 256, 256, 256, 256, 256, 256, 256, 256};
inline constexpr Counts gemma3_crops{0, 0, 0, 2, 2, 2, 0, 2, 4, 2};
inline constexpr Counts idefics3{2873, 2873, 2873, 2197, 2197, 2197, 2873, 2197, 845, 2197};
inline constexpr Counts idefics3_all{2912, 2912, 2912, 2227, 2228, 2227, 2912, 2227, 857, 2227};
inline constexpr Counts idefics3_tiles{17, 17, 17, 13, 13, 13, 17, 13, 5, 13};
inline constexpr Counts smolvlm_2b{1377, 1377, 1377, 1053, 1053, 1053, 1377, 1053, 405, 1053};
inline constexpr Counts smolvlm_2b_all{1416, 1416, 1416, 1083, 1084, 1083, 1416, 1083, 417, 1083};
inline constexpr Counts smolvlm_2b_tiles{17, 17, 17, 13, 13, 13, 17, 13, 5, 13};
inline constexpr Counts smolvlm_256m{1088, 1088, 1088, 832, 832, 832, 1088, 832, 320, 832};
inline constexpr Counts smolvlm_256m_all{1127, 1127, 1127, 862, 863, 862, 1127, 862, 332, 862};
inline constexpr Counts smolvlm_256m_tiles{17, 17, 17, 13, 13, 13, 17, 13, 5, 13};
inline constexpr Counts pixtral{196, 441, 784, 1200, 1200, 2304, 4096, 2304, 1024, 2304};
inline constexpr Counts pixtral_all{210, 462, 812, 1230, 1240, 2340, 4160, 2340, 1040, 2340};
inline constexpr Counts mistral3{64, 144, 256, 414, 414, 1196, 1369, 1705, 473, 1705};
inline constexpr Counts mistral3_all{72, 156, 272, 432, 437, 1222, 1406, 1736, 484, 1736};
inline constexpr Counts mllama_rows{1, 1, 1, 1, 2, 2, 2, 2, 1, 2};
inline constexpr Counts mllama_cols{1, 1, 1, 2, 1, 2, 2, 2, 3, 2};
inline constexpr Counts blip2{32, 32, 32, 32, 32, 32, 32, 32, 32, 32};

struct OddSize {
  Size image;
  std::int64_t llava_next, llava_onevision, qwen2_vl, qwen2_vl_small, qwen3_vl, glm4v, pixtral, mistral3, internvl,
      aya_vision;                                   // LLM tokens
  std::int64_t idefics3, smolvlm_2b, smolvlm_256m;  // tiles where every picture is split
  std::int64_t gemma3_crops;                        // with pan and scan
  std::int64_t mllama;                              // 10 * rows + cols of the tile grid
};

inline constexpr std::array<OddSize, 26> odd_sizes{{
    {{1, 1}, 1176, 1485, 4, 4, 64, 9, 1, 1, 256, 169, 17, 17, 17, 0, 11},
    {{27, 27}, 1176, 1485, 4, 4, 64, 9, 4, 1, 256, 169, 17, 17, 17, 0, 11},
    {{335, 337}, 1176, 1485, 144, 144, 110, 144, 462, 156, 256, 169, 17, 17, 17, 0, 11},
    {{336, 1009}, 2328, 2943, 432, 432, 320, 432, 1344, 444, 1024, 676, 9, 9, 9, 3, 12},
    {{500, 333}, 1476, 1849, 216, 216, 160, 216, 672, 216, 1792, 1183, 13, 13, 13, 0, 11},
    {{672, 1008}, 2144, 5157, 864, 864, 672, 864, 2646, 864, 1792, 1183, 13, 13, 13, 2, 22},
    {{768, 768}, 2928, 3699, 729, 729, 576, 729, 2304, 784, 1280, 845, 17, 17, 17, 0, 22},
    {{767, 1151}, 2144, 5157, 1107, 1107, 864, 1107, 2752, 1176, 1792, 1183, 13, 13, 13, 2, 22},
    {{1000, 1}, 648, 891, -1, -1, -1, -1, 63, 36, 3328, 2197, 5, 5, 5, 0, 21},
    {{999, 1333}, 2340, 7309, 1728, 1230, 1302, 1728, 3072, 1728, 3328, 2197, 13, 13, 13, 2, 22},
    {{1023, 1025}, 2928, 7371, 1369, 1225, 1024, 1369, 4096, 1369, 2560, 1690, 17, 17, 17, 0, 22},
    {{1120, 1120}, 2928, 7371, 1600, 1225, 1225, 1600, 4096, 1600, 2560, 1690, 17, 17, 17, 0, 22},
    {{1540, 1541}, 2928, 7209, 3025, 1225, 2304, 3025, 4096, 3025, 2560, 1690, 17, 17, 17, 0, 22},
    {{2049, 512}, 1944, 7371, 1314, 1207, 1024, 1314, 1024, 770, 1280, 845, 5, 5, 5, 4, 41},
    {{2268, 4032}, 1948, 7317, 11664, 1222, 8946, 7360, 2304, 1705, 2304, 1521, 13, 13, 13, 2, 22},
    {{3000, 2000}, 2160, 7362, 7597, 1247, 5828, 7420, 2752, 2035, 1792, 1183, 13, 13, 13, 2, 22},
    {{4096, 4096}, 2928, 7371, 16384, 1225, 16384, 7396, 4096, 3025, 2560, 1690, 17, 17, 17, 0, 22},
    {{5001, 313}, 936, 2673, 1969, 1144, 1560, 1969, 256, 220, 3328, 2197, 5, 5, 5, 4, 41},
    {{6000, 8000}, 2340, 7309, 16170, 1230, 16170, 7500, 3072, 2310, 3328, 2197, 13, 13, 13, 2, 22},
    {{13, 700}, 722, 784, 15, 15, 118, 54, 44, 25, 3328, 2197, 5, 5, 5, 0, 12},
    {{42, 42}, 1176, 1485, 4, 4, 64, 9, 9, 4, 256, 169, 17, 17, 17, 0, 11},
    {{70, 98}, 1416, 1261, 8, 8, 70, 8, 35, 12, 3328, 2197, 13, 13, 13, 0, 11},
    {{364, 365}, 2928, 1485, 169, 169, 121, 169, 529, 182, 256, 169, 17, 17, 17, 0, 11},
    {{729, 100}, 1368, 1161, 104, 104, 69, 104, 322, 108, 2048, 1352, 5, 5, 5, 0, 21},
    {{1, 1428}, 576, 838, -1, -1, -1, -1, -1, 51, 3328, 2197, 5, 5, 5, 0, 13},
    {{5, 12351}, 576, 757, -1, -1, -1, -1, -1, -1, 3328, 2197, 5, 5, 5, 0, 14},
}};

}  // namespace vlmest::reference
