#include <sotto/optim/wrappers/own_tensors.h>

#include <algorithm>
#include <utility>

#include <sotto/base/check.h>
#include <sotto/compress/none.h>
#include <sotto/optim/registry.h>

namespace sotto {

std::vector<std::size_t> tensors_of_parts(const ParameterLayout& whole,
                                          std::span<const Chunk> parts) {
  std::vector<std::size_t> numbers;
  for (const Chunk& part : parts) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const ParameterBlock& block = whole[i];
      if (block.offset >= part.offset && block.offset + block.size <= part.offset + part.size) {
        numbers.push_back(i);
      }
    }
  }
  return numbers;
}

ParameterLayout layout_of_parts(const ParameterLayout& whole, std::span<const Chunk> parts) {
  ParameterLayout layout;
  for (const std::size_t number : tensors_of_parts(whole, parts)) {
    append_block(layout, whole[number].name, whole[number].shape);
  }
  check(dimension_of(layout) == size_of_parts(parts), "parts of a model are whole tensors");
  return layout;
}

std::size_t size_of_parts(std::span<const Chunk> parts) {
  std::size_t size = 0;
  for (const Chunk& part : parts) {
    size += part.size;
  }
  return size;
}

void read_parts(std::span<const Chunk> parts, std::span<const float> whole,
                std::span<float> values) {
  check(values.size() == size_of_parts(parts), "each element of the parts has a place");
  auto next = values.begin();
  for (const Chunk& part : parts) {
    next = std::ranges::copy(part.of(whole), next).out;
  }
}

void write_parts(std::span<const Chunk> parts, std::span<const float> values,
                 std::span<float> whole) {
  check(values.size() == size_of_parts(parts), "each element of the parts has a value");
  for (const Chunk& part : parts) {
    std::ranges::copy(values.first(part.size), part.of(whole).begin());
    values = values.subspan(part.size);
  }
}

OwnTensors::OwnTensors(std::string_view spec, AlgorithmSetup setup, SteppedTensors stepped,
                       std::unique_ptr<StepRule> own_rule, std::vector<std::string>* warnings)
    : x_(setup.parameters), common_(std::move(stepped.common)), own_(std::move(stepped.own)) {
  read_model();
  if (!own_.x.empty()) {
    AlgorithmSetup own;
    own.parameters = own_.x;
    own.layout = layout_of_parts(setup.layout, own_.chunks);
    own.step_rule = std::move(own_rule);
    own.compressor = make_none();
    own.seed = setup.seed;
    own.run_id = setup.run_id;
    own_.algorithm = make_algorithm("allreduce", std::move(own));
  }
  setup.parameters = common_.x;
  setup.layout = layout_of_parts(setup.layout, common_.chunks);
  common_.algorithm = make_algorithm(spec, std::move(setup), warnings);
}

void OwnTensors::read_model() {
  read_parts(common_.chunks, x_, common_.x);
  read_parts(own_.chunks, x_, own_.x);
}

void OwnTensors::write_model() {
  write_parts(common_.chunks, common_.x, x_);
  write_parts(own_.chunks, own_.x, x_);
}

void OwnTensors::begin_round() {
  if (round() == 0) {  // until then the parameters are the caller's to write
    read_model();
  }
  common_.algorithm->begin_round();
  if (own_.algorithm) {
    own_.algorithm->begin_round();
  }
}

Status OwnTensors::take_gradient(std::span<const float> gradient) {
  check(gradient.size() == x_.size(), "a gradient is that of the whole model");
  read_parts(common_.chunks, gradient, common_.gradient);
  read_parts(own_.chunks, gradient, own_.gradient);
  // A gradient that is refused leaves both parts as they were, so the own one is looked at first.
  if (const NonFinite bad = host_ops().count_non_finite(own_.gradient); bad.count > 0) {
    return {Fault::non_finite,
            "the gradient of this node's own tensors holds a NaN or an infinity"};
  }
  if (Status status = common_.algorithm->take_gradient(common_.gradient); !status.ok()) {
    return status;
  }
  if (own_.algorithm) {
    if (Status status = own_.algorithm->take_gradient(own_.gradient); !status.ok()) {
      return status.with_context("this node's own tensors");
    }
    check(own_.algorithm->idle(), "a job of one node waits for nobody");
  }
  if (parameters_ready()) {
    write_model();
  }
  return {};
}

Status OwnTensors::complete(const Exchange& exchange) {
  const bool was_ready = parameters_ready();
  Status status = common_.algorithm->complete(exchange);
  if (status.ok() && !was_ready && parameters_ready()) {
    write_model();
  }
  return status;
}

void OwnTensors::save(ByteBuffer& out) const {
  common_.algorithm->save(out);
  if (own_.algorithm) {
    own_.algorithm->save(out);
  }
}

Status OwnTensors::load(ByteReader& in) {
  read_model();
  Status status = common_.algorithm->load(in);
  return status.ok() && own_.algorithm ? own_.algorithm->load(in) : status;
}

}  // namespace sotto
