#include <sotto/groups/programs/pipeline.h>

#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

std::size_t width_at(const PipelineOptions& options, int boundary) {
  return options.widths.size() == 1 ? options.widths.front()
                                    : options.widths[static_cast<std::size_t>(boundary)];
}

void check_pipeline(const PipelineOptions& options, int stages) {
  if (options.batches < 1) {
    refuse("batches", fmt::format("{}", options.batches), "take 1 micro-batch or more");
  }
  const auto boundaries = static_cast<std::size_t>(stages - 1);
  if (options.widths.size() != 1 && options.widths.size() != boundaries) {
    refuse("widths", fmt::format("{}", options.widths.size()),
           fmt::format("there are {} boundaries between {} stages; give a width for each, or one "
                       "for all",
                       boundaries, stages));
  }
}

}  // namespace

Pipeline::Pipeline(const ProgramNode& node, const PipelineOptions& options,
                   std::unique_ptr<PipelineStage> stage)
    : batches_(options.batches), stage_(std::move(stage)) {
  const GroupMember member = node.member(options.axis);
  position_ = member.group.position;
  size_ = member.group.size();
  check_pipeline(options, size_);
  for (int at = 0; at + 1 < size_; ++at) {
    links_.push_back(std::make_unique<KeyedLink>(
        member, KeyedLinkOptions{.from = at,
                                 .to = at + 1,
                                 .width = width_at(options, at),
                                 .rows = options.rows,
                                 .batches = options.batches,
                                 .keys = options.keys,
                                 .compressor = options.compressor,
                                 .first = options.first,
                                 .gradient_compressor = options.gradient_compressor,
                                 .memory = options.memory,
                                 .memory_limit = options.memory_limit}));
  }
  if (position_ + 1 < size_) {
    out_.resize(options.rows * width_at(options, position_));
  }
  if (position_ > 0) {
    din_.resize(options.rows * width_at(options, position_ - 1));
  }
  stages_.push_back(
      {"begin", [this](const RoundInput& in) { return stage_->begin(in); }, nullptr, 0});
  list_forward(options.forward_flops);
  list_backward(options.backward_flops);
}

void Pipeline::list_forward(double flops) {
  // In a tick a node sends what it has, before it waits for the next micro-batch.
  for (int tick = 0; tick < batches_ + size_ - 1; ++tick) {
    for (int at = size_ - 1; at >= 0; --at) {
      const int batch = tick - at;
      if (batch < 0 || batch >= batches_) {
        continue;
      }
      stages_.push_back({fmt::format("forward of micro-batch {} at {}", batch, at),
                         [this, at, batch](const RoundInput&) { return forward(at, batch); },
                         at + 1 < size_ ? &link_behind(at).carrying(batch) : nullptr,
                         at == position_ ? flops : 0});
    }
  }
}

void Pipeline::list_backward(double flops) {
  for (int tick = 0; tick < batches_ + size_ - 1; ++tick) {
    for (int at = 0; at < size_; ++at) {
      const int batch = tick - (size_ - 1 - at);
      if (batch < 0 || batch >= batches_) {
        continue;
      }
      stages_.push_back({fmt::format("backward of micro-batch {} at {}", batch, at),
                         [this, at, batch](const RoundInput&) { return backward(at, batch); },
                         at > 0 ? &link_behind(at - 1).returning(batch) : nullptr,
                         at == position_ ? flops : 0});
    }
  }
}

std::span<const float> Pipeline::rows_in(int batch) const {
  return position_ == 0 ? std::span<const float>() : link_behind(position_ - 1).rows(batch);
}

std::span<float> Pipeline::rows_at(int at, int batch, std::vector<float>& room) const {
  if (at < 0 || at + 1 >= size_) {
    return {};
  }
  const KeyedLinkOptions& options = link_behind(at).options();
  const std::size_t rows = stage_->keys(batch).size();
  check(rows <= options.rows, "a micro-batch has at most the pipeline's rows");
  return std::span(room).first(rows * options.width);
}

Status Pipeline::forward(int at, int batch) {
  if (at + 1 == position_) {
    return link_behind(at).receive(batch, stage_->keys(batch));
  }
  if (at != position_) {
    return {};
  }
  const auto out = rows_at(at, batch, out_);
  Status status = stage_->forward(batch, rows_in(batch), out);
  if (status.ok() && at + 1 < size_) {
    status = link_behind(at).send(batch, stage_->keys(batch), out);
  }
  return status;
}

Status Pipeline::backward(int at, int batch) {
  if (at - 1 == position_) {
    link_behind(position_).receive_gradient(batch);
  }
  if (at != position_) {
    return {};
  }
  const auto dout = at + 1 < size_ ? link_behind(at).gradient(batch) : std::span<const float>();
  const auto din = rows_at(at - 1, batch, din_);
  Status status = stage_->backward(batch, rows_in(batch), dout, din);
  if (status.ok() && at > 0) {
    link_behind(at - 1).send_gradient(batch, din);
  }
  return status;
}

}  // namespace sotto
