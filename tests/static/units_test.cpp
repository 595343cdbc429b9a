// SPDX-License-Identifier: Apache-2.0
// What the counted units can and cannot do, decided by the compiler. The diagnostics are tested in tests/compile.
#include <concepts>
#include <cstdint>
#include <type_traits>

#include <vlmest/unit/rate.hpp>
#include <vlmest/unit/units.hpp>

namespace units_test {
using namespace vlmest;
using namespace vlmest::literals;

template <class A, class B>
concept adds = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept subtracts = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept multiplies = requires(A a, B b) {
  a* b;
};
template <class A, class B>
concept divides = requires(A a, B b) {
  a / b;
};
template <class A, class B>
concept compares = requires(A a, B b) {
  a < b;
};

// Same kind: a sum, a difference, an order and a plain ratio.
static_assert(std::same_as<decltype(Bytes(1) + Bytes(2)), Bytes>);
static_assert(Bytes(3) + Bytes(4) == Bytes(7));
static_assert(Bytes(3) - Bytes(4) == Bytes(-1));
static_assert(Bytes(3) < Bytes(4) && Bytes(4) > Bytes(3) && Bytes(3) != Bytes(4));
static_assert(std::same_as<decltype(Bytes(1) / Bytes(2)), double>);
static_assert(Bytes(3) / Bytes(4) == 0.75);
static_assert([] {
  Bytes b(5);
  b += Bytes(3);
  b -= Bytes(1);
  return b;
}() == Bytes(7));

// Scaled by any integer, from either side.
static_assert(Bytes(6) * 7 == Bytes(42) && 7 * Bytes(6) == Bytes(42));
static_assert(Bytes(6) * std::uint8_t{7} == Bytes(42) && std::int64_t{7} * Bytes(6) == Bytes(42));
static_assert(!multiplies<Bytes, double> && !multiplies<double, Bytes> && !multiplies<Bytes, float>);
static_assert(!multiplies<Bytes, Bytes>);
static_assert(!divides<Bytes, int>);

// Different kinds do not mix.
template <class A, class B>
inline constexpr bool unrelated =
    !adds<A, B> && !subtracts<A, B> && !divides<A, B> && !compares<A, B> && !std::is_convertible_v<A, B> &&
    !std::is_constructible_v<A, B> && !std::is_assignable_v<A&, B>;
static_assert(unrelated<Bytes, Elements> && unrelated<Elements, Bytes>);
static_assert(unrelated<Macs, Flops> && unrelated<Flops, Macs>);
static_assert(unrelated<Flops, Bytes> && unrelated<Elements, Macs>);

// In and out only by name.
static_assert(!std::is_convertible_v<int, Bytes> && std::is_constructible_v<Bytes, int>);
static_assert(!std::is_constructible_v<Bytes, double>);
static_assert(!std::is_convertible_v<Bytes, std::int64_t> && !std::is_constructible_v<std::int64_t, Bytes>);
static_assert(!adds<Bytes, int> && !compares<Bytes, int>);
static_assert(Bytes(5).value() == 5 && Bytes{} == Bytes(0));
static_assert(std::is_trivially_copyable_v<Bytes> && sizeof(Bytes) == sizeof(std::int64_t));

// A multiply-add is two operations.
static_assert(std::same_as<decltype(flops(Macs(1))), Flops>);
static_assert(flops(Macs(21)) == Flops(42));

static_assert(1_B == Bytes(1) && 1_KiB == Bytes(1024) && 1_MiB == 1024 * 1_KiB && 1_GiB == 1024 * 1_MiB);

// Rates turn amounts into times, each its own.
static_assert(std::same_as<decltype(Bytes(1) / Bandwidth{2}), Seconds>);
static_assert(Bytes(6) / Bandwidth{2} == Seconds{3} && Flops(6) / FlopRate{2} == Seconds{3});
static_assert(!divides<Bytes, FlopRate> && !divides<Flops, Bandwidth> && !divides<Macs, FlopRate>);
static_assert(Seconds{1} + Seconds{2} == Seconds{3} && !adds<Seconds, double> && !adds<Seconds, Bytes>);
static_assert(Seconds{2}.ms() == 2e3 && Seconds{2}.us() == 2e6);

}  // namespace units_test
