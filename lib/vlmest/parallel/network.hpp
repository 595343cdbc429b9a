// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/parallel/collective.hpp>
#include <vlmest/unit/rate.hpp>

/// How long collectives take over the links between GPUs.
namespace vlmest::parallel {

/// What a collective was measured to take.
struct MeasuredCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int ranks = 2;
  Bytes bytes{};  ///< of its tensor when it is whole
  Seconds time;
};

/// What a collective took, by the bytes of its whole tensor.
struct CollectivePoint {
  Bytes bytes{};
  Seconds time;
};
/// Measured on so many ranks, from small to large.
struct CollectiveCurve {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int ranks = 2;
  std::vector<CollectivePoint> points;
};

/// GPUs that reach each other over the same links: those of a host, those of a cluster.
struct Domain {
  std::string name;
  std::int64_t gpus = 1;      ///< at most
  Bandwidth bandwidth;        ///< one direction, that a ring through all links of a host has
  Seconds launch;             ///< of a collective with hardly any bytes on two ranks
  Seconds hop;                ///< more for each further step
  std::int64_t channels = 0;  ///< of NCCL's rings, each of which has buffers
  std::vector<CollectiveCurve> curves;
};

/// Domains from the innermost to the outermost.
struct Network {
  std::string name;
  std::vector<Domain> domains;
};

/// Between two measured points time is a straight line; below the first it is the first's, beyond the last it goes on
/// as it went between the last two. Of a curve with a point at least.
Seconds time(const CollectiveCurve& curve, Bytes bytes);

/// Steps one after the other: a ring has a step for each other rank, and gathers what it has reduced in as many again
/// (traffic); an all-reduce of few bytes takes a double binary tree's instead, up and down, where these are fewer
/// (Sanders, Speck, Traeff: Two-tree algorithms for full bandwidth broadcast, reduction and scan, Parallel Computing
/// 35(12), 2009; NCCL 2.4). A send is one.
std::int64_t steps(CollectiveKind kind, std::int64_t ranks);

/// One collective of so many bytes when whole, on ranks of which each is `apart` GPUs from the next; nothing on one.
/// A curve of as many ranks decides, or of the most below, or of the fewest above: of other ranks the time is that of
/// the bytes whose traffic there is the same, and of the steps between; without a curve a latency and the traffic over
/// the link's bandwidth. The GPUs between two ranks are in
/// groups of their own, which all send at the same time: they divide the links out of their domain. Throws Error where
/// no domain has room for the ranks.
Seconds time(const Network& n, CollectiveKind kind, Bytes bytes, std::int64_t ranks, std::int64_t apart = 1);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/network.hpp>
#endif
