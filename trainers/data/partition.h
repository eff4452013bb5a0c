// How the training examples are dealt out to the nodes.
//
// Every example goes to exactly one node. The shards' sizes differ by at most one, so that the
// average of the nodes' objectives is the objective over all data; but where nodes are to have
// unequal amounts, which OptimizerOptions::weight makes up for. Pure functions, deterministic in
// their arguments; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sotto {

struct Partition {
  /// How examples are dealt out.
  enum class Kind {
    iid,        ///< shuffled, then dealt in equal shares
    dirichlet,  ///< every node has its own mix of the classes (Hsu, Qi and Brown 2019)
    label,      ///< sorted by label, then cut: a node sees few classes, the hardest case
    sizes,      ///< shuffled, then dealt in unequal shares (Li, Diao, Chen and He 2022)
    blocks,     ///< in the order of the data, cut: each node has a stretch of a text
  };
  Kind kind = Kind::iid;
  /// dirichlet: node i's class mix is q_i ~ Dir(α p), p the classes' shares of all data. Large α
  /// tends to iid, small α to one class a node.
  double alpha = 1;
  /// sizes: the nodes' shares are drawn from Dir(β). Large β tends to iid; with a small one few
  /// nodes have most of the data.
  double beta = 1;

  /// Whether it depends on the examples' classes.
  bool by_class() const { return kind == Kind::dirichlet || kind == Kind::label; }
  /// The specification that parses to this partition.
  std::string spec() const;
};

/// The names with which specifications begin.
std::vector<std::string> partition_names();

/// Parses `iid`, `dirichlet:ALPHA`, `label`, `sizes:BETA` (ALPHA and BETA in 0.0001 … 1000000) or
/// `blocks`. Throws Error.
Partition parse_partition(std::string_view spec);

/// Row numbers of the examples of each node; those of `blocks` do not depend on the seed. `labels`
/// are 0 … classes − 1, at most 2^32 − 1 of them. Throws Error unless there is at least one example
/// for every node.
///
/// dirichlet follows M. Hsu, H. Qi, M. Brown, "Measuring the effects of non-identical data
/// distribution for federated visual classification" (arXiv:1909.06335), section 3: nodes take
/// turns drawing an example from a class chosen by their mix; a class that is used up leaves the
/// mixes, which are renormalized.
///
/// sizes is the quantity skew of Q. Li, Y. Diao, Q. Chen, B. He, "Federated learning on non-IID
/// data silos: an experimental study" (ICDE 2022, arXiv:2102.02079), section IV; each node has one
/// example at least.
std::vector<std::vector<std::uint32_t>> partition_examples(std::span<const std::int32_t> labels,
                                                           int classes, int nodes,
                                                           const Partition& partition,
                                                           std::uint64_t seed);

}  // namespace sotto
