// A model of which some tensors are common to all nodes, and others belong to one node each, as
// experts do that lie at different nodes (groups/).
//
// Rule, at node i:  the common tensors are a model by themselves, trained by an algorithm between
// all
//   nodes; node i's own tensors are another one, of a job of one node: x ← x − d, d the step rule's
//   direction of their gradient. Tensors of other nodes stay as they are here.
//
// Assumes gradients of own tensors that are whole: of the mean of all nodes' losses.
// Memory: copies of the tensors that are stepped and of their gradients, 2 floats for each of these
//   parameters; and the algorithm's and the step rule's state of them alone.
// Bytes a round: the algorithm's, of the common tensors.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/optim/algorithm.h>
#include <sotto/optim/exchange/chunks.h>

namespace sotto {

/// Which parameters a node steps: whole tensors, in their order.
struct SteppedTensors {
  std::vector<Chunk> common;  ///< parameters of the tensors that all nodes have
  std::vector<Chunk> own;     ///< parameters of those of this node alone
};

/// The numbers of the tensors that these parts of a model consist of, in the parts' order.
std::vector<std::size_t> tensors_of_parts(const ParameterLayout& whole,
                                          std::span<const Chunk> parts);
/// The layout of these parts of a model, put one behind the other; they are whole tensors.
ParameterLayout layout_of_parts(const ParameterLayout& whole, std::span<const Chunk> parts);
/// The elements of all parts together.
std::size_t size_of_parts(std::span<const Chunk> parts);
/// Copies the parts of a model to `values`, one behind the other, which has as many elements.
void read_parts(std::span<const Chunk> parts, std::span<const float> whole,
                std::span<float> values);
/// Copies such values into the parts of a model.
void write_parts(std::span<const Chunk> parts, std::span<const float> values,
                 std::span<float> whole);

class OwnTensors final : public Algorithm {
 public:
  /// `spec` and `setup` are those of the algorithm (make_algorithm), but that parameters and layout
  /// are the whole model's; its step rule is for the common tensors, and `own_rule` for the own
  /// ones (make_step_rule_of_part). `warnings` may be null. Throws Error as make_algorithm.
  OwnTensors(std::string_view spec, AlgorithmSetup setup, SteppedTensors stepped,
             std::unique_ptr<StepRule> own_rule, std::vector<std::string>* warnings);

  std::string_view name() const override { return common_.algorithm->name(); }
  Peers peers() const override { return common_.algorithm->peers(); }
  std::span<const float> parameters() const override { return x_; }
  Round round() const override { return common_.algorithm->round(); }
  bool parameters_ready() const override { return common_.algorithm->parameters_ready(); }
  bool accepts_gradient() const override { return common_.algorithm->accepts_gradient(); }
  bool idle() const override { return common_.algorithm->idle(); }
  void begin_round() override;
  Status take_gradient(std::span<const float> gradient) override;
  Result<bool> next_exchange(Exchange& out) override {
    return common_.algorithm->next_exchange(out);
  }
  Status complete(const Exchange& exchange) override;
  double flops_behind(const ExchangeTag& tag) const override {
    return common_.algorithm->flops_behind(tag);
  }
  AlgorithmCounters counters() const override { return common_.algorithm->counters(); }
  std::vector<std::string> take_warnings() override { return common_.algorithm->take_warnings(); }
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

 private:
  /// Some of the tensors, as a model by themselves.
  struct Part {
    explicit Part(std::vector<Chunk> where)
        : chunks(std::move(where)), x(size_of_parts(chunks)), gradient(x.size()) {}

    std::vector<Chunk> chunks;
    std::vector<float> x;
    std::vector<float> gradient;
    std::unique_ptr<Algorithm> algorithm = {};  ///< null: there are no such tensors
  };

  /// The parts have what the whole model has, and back.
  void read_model();
  void write_model();

  std::span<float> x_;
  Part common_;
  Part own_;
};

}  // namespace sotto
