// Programs: collectives within a round, and the computation between them, as a fixed list of
// stages.
//
// A stage computes, and then carries its collective. The list is built once, with its loops
// unrolled; all nodes have the same one, so that the members of a group meet its collectives in one
// order and cannot wait for each other in a circle. What the list will carry is known before it
// runs: `ProgramAlgorithm::volume` is the sum over the list.
//
// A program is run as an Algorithm whose round is the list. So all drivers run it: LockstepDriver,
// Simulator, and Driver over threads and sockets. The gradient that a driver hands over is the
// round's input, of which the program makes what it wants; parameters are the caller's, and the
// program's stages change them.
//
// Every frame has a stamp of the list. Nodes with other stages, sizes or compressors refuse each
// other's frames in their first exchange.
//
// One thread at a time; allocates only in the constructor, as far as the stages do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/groups/collective.h>
#include <sotto/groups/node_grid.h>
#include <sotto/groups/volume.h>
#include <sotto/optim/node_algorithm.h>

namespace sotto {

/// What a round begins with.
struct RoundInput {
  Round round = 0;
  /// What the driver handed over, as many elements as the parameters; stays until the round ends.
  std::span<const float> gradient;
};

/// One entry of a program's list.
struct ProgramStage {
  std::string name;  ///< name in messages and in the stamp, the same at all nodes
  /// What the stage computes; it begins the collective, if there is one. A fault ends the run and
  /// names the stage.
  std::function<Status(const RoundInput&)> compute;
  /// Collective that is carried next, with all its phases; null: none. A collective is in one stage
  /// only.
  Collective* collective = nullptr;
  /// Floating-point operations of compute, for simulations, where it runs behind an exchange. The
  /// stages in front of the first exchange are the time of a gradient (NodeSpec::compute).
  double flops = 0;
  /// The computation may leave the collective alone, in a round in which it does so at all members
  /// of the group; else that is a fault.
  bool optional = false;
};

/// A node's list, and whatever its stages work on.
class Program {
 public:
  Program() = default;
  virtual ~Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// The list, which never changes.
  virtual std::span<const ProgramStage> stages() const = 0;
  /// Appends what the program remembers from round to round, but for parameters and collectives.
  virtual void save(ByteBuffer& /*out*/) const {}
  /// Takes back what save wrote.
  virtual Status load(ByteReader& /*in*/) { return {}; }
};

/// What a node is in its job, for one that builds a program.
class ProgramNode {
 public:
  /// A view of `node`, a point of `grid`; both must outlive it.
  ProgramNode(LocalNode& node, const NodeGrid& grid) : node_(&node), grid_(&grid) {}

  Rank rank() const { return node_->rank(); }
  const NodeGrid& grid() const { return *grid_; }
  const Ops& ops() const { return node_->ops(); }
  /// The parameters.
  std::span<float> parameters() const { return node_->x(); }
  /// The node as a member of the group along an axis; throws Error as NodeGrid::group.
  GroupMember member(std::string_view axis) const {
    return {.node = node_, .group = grid_->group(axis, rank())};
  }
  /// The node as a member of the group along several axes; throws Error as NodeGrid::group.
  GroupMember member(std::span<const std::string_view> axes) const {
    return {.node = node_, .group = grid_->group(axes, rank())};
  }
  /// The node as a member of the group of all nodes.
  GroupMember everyone() const { return {.node = node_, .group = grid_->all(rank())}; }

 private:
  LocalNode* node_;
  const NodeGrid* grid_;
};

/// Builds a node's program; throws Error for what is refused. The node outlives the program.
using BuildProgram = std::function<std::unique_ptr<Program>(const ProgramNode& node)>;

/// A node that runs a program.
struct ProgramSetup {
  Rank rank = 0;
  int nodes = 1;
  std::string grid;             ///< grid of all nodes (node_grid.h): "data=4,expert=2"
  std::span<float> parameters;  ///< model, which must outlive the algorithm and stay where it is
  std::uint64_t seed = 0;       ///< seed of all random rounding
  std::uint64_t run_id = 0;     ///< number of the run; frames of others are refused
};

/// A program as an algorithm whose round is the program's list. Parameters are the caller's, and
/// change as the stages say.
class ProgramAlgorithm final : public NodeAlgorithm {
 public:
  static const AlgorithmInfo kInfo;

  /// The most phases of a round: frames number them in 16 bits.
  static constexpr int kMostPhases = 1 << 16;
  /// The most roundings in a round: they have 24 bits.
  static constexpr std::uint64_t kMostParts = std::uint64_t{1} << 24U;

  /// Throws Error for a grid or a program that is refused (field "stages": a list with more phases
  /// or rounding keys than a round has, or with one collective in two places).
  ProgramAlgorithm(const ProgramSetup& setup, const BuildProgram& build);

  /// What a round sends and receives, exactly as EdgeVolume has it.
  ExchangeVolume volume() const;
  /// A digest of the list, equal at all nodes that can run it together.
  std::uint64_t digest() const { return digest_; }
  /// Number of phases in a round.
  int phases() const { return phases_; }
  /// Floating-point operations of the stages in front of this node's first exchange, which the
  /// simulator has in the time of a gradient.
  double flops_in_front() const;
  Program& program() const { return *program_; }

  Peers peers() const override;
  bool parameters_ready() const override { return !running_; }
  bool accepts_gradient() const override { return node_.in_round() && !running_; }
  bool idle() const override { return !node_.in_round(); }
  Status take_gradient(std::span<const float> gradient) override;
  Result<bool> next_exchange(Exchange& out) override;
  Status complete(const Exchange& exchange) override;
  double flops_behind(const ExchangeTag& tag) const override;
  AlgorithmCounters counters() const override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

 private:
  /// Numbers phases and keys, and writes the stamp of the list into this node's frames.
  void place_collectives();
  /// Runs stages until one waits for an exchange, or the round is done.
  Status advance();
  const ProgramStage& stage() const { return program_->stages()[at_]; }
  Status in_stage(const Status& status) const;
  /// `status`, or what explains it: a frame of a node with another list.
  Status explained(const Status& status, const Exchange& exchange) const;

  NodeGrid grid_;
  std::unique_ptr<Program> program_;
  std::uint64_t digest_ = 0;
  int phases_ = 0;
  std::vector<bool> takes_part_;  ///< by stage: this node sends or receives in its collective
  RoundInput input_;
  std::size_t at_ = 0;    ///< index of the stage under way
  bool running_ = false;  ///< the round's input is there, its result not yet
  Status failed_;         ///< fault of a stage, which is final
};

}  // namespace sotto
