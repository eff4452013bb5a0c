// A model cut into stages that lie at different nodes: micro-batches go through them one behind
// another, and gradients come back.
//
// Source: GPipe (Huang et al. 2018, arXiv:1811.06965): all micro-batches forward, then all
// backward, so that the gradient is that of the whole model at one point. Rows between two stages
// go by a KeyedLink (keyed_link.h).
//
// With S stages and M micro-batches, stage s works on micro-batch m in tick m + s forward, and in
// tick m + S − 1 − s backward; it is idle for a share (S − 1)/(M + S − 1) of the ticks. A node
// sends a micro-batch before it works on the next one: transmission adds to a tick. The gradient of
// a stage is the sum over micro-batches in the order 0, 1, …; with the compressor `none` both ways
// it is that of the unsplit model to the bit, if its layers are computed alike.
//
// Volume: a boundary carries a frame there and one back each micro-batch. Memory: rows × width
// floats a micro-batch and boundary, the links' memories, and what the stages keep.
//
// One thread at a time; allocates in the constructor, and a key's first visit its entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/groups/keyed_link.h>
#include <sotto/groups/program_gradient.h>

namespace sotto {

/// What one node of a pipeline computes: its layers, at its parameters.
class PipelineStage {
 public:
  PipelineStage() = default;
  virtual ~PipelineStage() = default;
  PipelineStage(const PipelineStage&) = delete;
  PipelineStage& operator=(const PipelineStage&) = delete;

  /// A round begins: the stage chooses the round's examples, the same at all stages, and sets its
  /// gradient to 0. A fault ends the run, as do those of the others.
  virtual Status begin(const RoundInput& input) = 0;
  /// The keys of a micro-batch's rows (KeyedLink), the same at all stages, as many as there are
  /// rows; valid until the next call.
  virtual std::span<const std::uint64_t> keys(int batch) = 0;
  /// Writes the rows behind the stage to `out`, from those in front of it. The first stage has no
  /// rows in front of it, and the last one none behind it: these spans are empty.
  virtual Status forward(int batch, std::span<const float> in, std::span<float> out) = 0;
  /// Adds the micro-batch's part to the gradient, and writes that of `in` to `din`, given the
  /// gradient of `out`. `in` is what forward had; the spans are empty where forward's were. The
  /// stage keeps what it needs from forward, or computes it again.
  virtual Status backward(int batch, std::span<const float> in, std::span<const float> dout,
                          std::span<float> din) = 0;
  /// The gradient at the node's parameters, once backward has had all micro-batches.
  virtual std::span<const float> gradient() const = 0;
};

/// A pipeline, the same at all nodes but for the flops.
struct PipelineOptions {
  std::string axis = "stage";  ///< axis of the grid along which the stages lie, the first at 0
  int batches = 1;             ///< micro-batches of a round, M
  std::size_t rows = 1;        ///< most rows of a micro-batch
  /// Elements of a row between a stage and the next: one width for each of the S − 1 boundaries,
  /// or a single one for all.
  std::vector<std::size_t> widths = {1};
  std::size_t keys = 1;  ///< most keys that a link remembers: the rows of a pass over the data
  std::string compressor = "none";           ///< compressor of rows that come again (KeyedLink)
  std::string first = "quant:8";             ///< compressor of first visits; not used with none
  std::string gradient_compressor = "none";  ///< compressor of gradients on their way back
  KeyedForm memory = KeyedForm::fp32;        ///< form of the rows that a link remembers
  std::size_t memory_limit = std::size_t{1} << 30U;  ///< most bytes of a link's memory at one end
  double forward_flops = 0;   ///< this stage's floating-point operations for a micro-batch
  double backward_flops = 0;  ///< those of its backward pass
};

/// A pipeline as a program whose result is the gradient of this node's stage.
class Pipeline final : public GradientProgram {
 public:
  /// Throws Error as ProgramNode::member for the axis, (field "batches") for none, (field "widths")
  /// for another number of them than there are boundaries, and as KeyedLink.
  Pipeline(const ProgramNode& node, const PipelineOptions& options,
           std::unique_ptr<PipelineStage> stage);

  std::span<const ProgramStage> stages() const override { return stages_; }
  std::span<const float> gradient() const override { return stage_->gradient(); }
  /// This node's layers.
  PipelineStage& stage() const { return *stage_; }
  /// Which stage this node has, from 0 on.
  int position() const { return position_; }
  /// Number of stages, S.
  int size() const { return size_; }
  /// The link behind stage `at`, 0 … size() − 2.
  const KeyedLink& link(int at) const { return *links_[static_cast<std::size_t>(at)]; }

 private:
  /// Lists the ticks of the passes forward, or backward.
  void list_forward(double flops);
  void list_backward(double flops);
  Status forward(int at, int batch);
  Status backward(int at, int batch);
  KeyedLink& link_behind(int at) const { return *links_[static_cast<std::size_t>(at)]; }
  /// Rows in front of this node's stage; empty at the first one.
  std::span<const float> rows_in(int batch) const;
  /// `room` for the rows of a batch at the boundary behind stage `at`; empty where there is none.
  std::span<float> rows_at(int at, int batch, std::vector<float>& room) const;

  int batches_;
  int position_;
  int size_;
  std::unique_ptr<PipelineStage> stage_;
  std::vector<std::unique_ptr<KeyedLink>> links_;  // by boundary
  std::vector<float> out_;                         // rows that are sent
  std::vector<float> din_;                         // gradients that are sent
  std::vector<ProgramStage> stages_;
};

}  // namespace sotto
