// A program that makes a gradient, and an algorithm that takes it within a group: experts or stages
// along one axis of a grid, gossip or all-reduce along another.
//
// Round: the driver hands over a gradient, which is the program's input; the program's result is
// the gradient of this node's parameters, and the algorithm's input. The parameters are this node's
// share of the model, which the nodes of the algorithm's group have in common.
//
// The algorithm is one of the registry and thinks that its group is the job. Its seed differs from
// group to group. Its faults name positions, and the group's ranks in front of them.
//
// Noise for differential privacy is not offered: it is put on gradients, and does not cover what
// the program's exchanges tell of the data.
//
// One thread at a time; allocates only in the constructor, as far as program and algorithm do.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/groups/program.h>
#include <sotto/groups/rank_map.h>
#include <sotto/optim/algorithm.h>

namespace sotto {

/// A program whose result is a gradient.
class GradientProgram : public Program {
 public:
  /// The gradient at the parameters, once all stages have run; as long as they are, and untouched
  /// until the next round.
  virtual std::span<const float> gradient() const = 0;
};

/// The algorithm that takes a program's gradients.
struct GroupAlgorithm {
  std::string axis;                     ///< axis of its group
  std::string algorithm = "allreduce";  ///< specification (optim/registry.h)
  std::string compressor = {};          ///< specification; empty: the algorithm's default
  std::string topology = "ring";        ///< graph of the group (topology/registry.h)
  StepRuleOptions step_rule = {};
};

/// Builds a node's program; throws Error for what is refused.
using BuildGradientProgram =
    std::function<std::unique_ptr<GradientProgram>(const ProgramNode& node)>;

class ProgramGradient final : public Algorithm {
 public:
  /// Throws Error as ProgramAlgorithm, as NodeGrid::group for the axis, and as make_algorithm.
  ProgramGradient(const ProgramSetup& setup, const BuildGradientProgram& build,
                  const GroupAlgorithm& algorithm);

  /// An algorithm that is made already, for the program's parameters, between the nodes along
  /// `axis`; `settings` are those of which its nodes make one, as text. Throws Error as
  /// ProgramAlgorithm, and as NodeGrid::group for the axis.
  ProgramGradient(const ProgramSetup& setup, const BuildGradientProgram& build,
                  std::string_view axis, std::unique_ptr<Algorithm> algorithm,
                  std::string_view settings);

  /// The program's part of a round's traffic.
  ExchangeVolume volume() const { return program_.volume(); }

  std::string_view name() const override { return inner_->name(); }
  Peers peers() const override;
  std::span<const float> parameters() const override { return inner_->parameters(); }
  Round round() const override { return inner_->round(); }
  bool parameters_ready() const override { return !running_ && inner_->parameters_ready(); }
  bool accepts_gradient() const override { return !failed_.ok() || program_.accepts_gradient(); }
  bool idle() const override { return program_.idle() && !running_ && inner_->idle(); }
  void begin_round() override;
  Status take_gradient(std::span<const float> gradient) override;
  Result<bool> next_exchange(Exchange& out) override;
  Status complete(const Exchange& exchange) override;
  double flops_behind(const ExchangeTag& tag) const override;
  AlgorithmCounters counters() const override;
  std::vector<std::string> take_warnings() override { return inner_->take_warnings(); }
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

 private:
  /// `make` is called with the group along the axis.
  ProgramGradient(const ProgramSetup& setup, const BuildGradientProgram& build,
                  std::string_view axis,
                  const std::function<std::unique_ptr<Algorithm>(const Group&)>& make,
                  SettingsStamp stamp);
  static bool of_program(const ExchangeTag& tag) { return tag.bucket >= kMostBuckets; }
  /// A fault of the inner algorithm, with the ranks of its group in front.
  Status in_group(const Status& status) const;
  /// Hands the gradient over once the program has made it and the algorithm takes it.
  Status hand_over();

  const GradientProgram* made_ = nullptr;  ///< the program of program_
  ProgramAlgorithm program_;
  RankMap map_;
  std::unique_ptr<Algorithm> inner_;
  SettingsStamp stamp_ = kAsAgreed;  ///< of the inner algorithm's settings
  bool running_ = false;             ///< the round's input is there, its gradient not handed over
  Status failed_;  ///< fault of the algorithm with the program's gradient; there is no other
};

}  // namespace sotto
