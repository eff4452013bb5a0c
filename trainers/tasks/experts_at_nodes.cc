#include <sotto/trainers/tasks/experts_at_nodes.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/compress/registry.h>
#include <sotto/groups/programs/expert_exchange.h>
#include <sotto/groups/row_codec.h>
#include <sotto/trainers/tasks/task_decorator.h>

#include "models/transformer.h"

namespace sotto {
namespace {

/// How rows of batches of so many examples go to the experts of layer l.
ExpertOptions options_of_layer(const Transformer& model, std::size_t l, std::size_t examples,
                               const ExpertsAtNodes& how) {
  return {.experts = model.experts(l).experts(),
          .width = model.width(),
          .tokens = examples * model.positions(),
          .gate = "prototypes:1",
          .capacity = how.capacity,
          .compressor = how.compressor,
          .gradient_compressor = how.compressor};
}

/// One layer of experts, of which this node has some.
struct ExpertLayer {
  ExpertLayer(const GroupMember& member, const ExpertOptions& options)
      : exchange(member, options) {}

  ExpertExchange exchange;
  std::vector<float> scores;
  std::vector<float> score_gradient;
  std::vector<std::vector<float>> inside;  ///< by own expert, what forward keeps
};

/// A node's gradient of a transformer whose experts lie at all nodes. One step is a round.
class ExpertProgram final : public GradientProgram {
 public:
  ExpertProgram(const ProgramNode& node, std::unique_ptr<SupervisedTask> task, std::size_t examples,
                const ExpertsAtNodes& how);

  std::span<const ProgramStage> stages() const override { return stages_; }
  std::span<const float> gradient() const override { return gradient_; }

 private:
  void list_stages();
  ExpertExchange& exchange(std::size_t l) { return layers_[l]->exchange; }
  const ExpertMlp& mlp(std::size_t l) const { return model_.experts(l); }
  MatrixView rows_at(std::size_t l) const { return view(reached_[l], positions_, model_.width()); }

  /// Begins with the examples of a round.
  void begin(Round round);
  /// Takes what the experts of layer l have made.
  Status come_back(std::size_t l);
  /// Sends the rows of layer l to its experts, once the layers before it are computed.
  Status reach(std::size_t l, Round round);
  Status experts_forward(std::size_t l);
  /// The loss, and what the last layer's experts are told of it.
  Status judge();
  Status experts_backward(std::size_t l);
  /// Goes back from layer l to the one before it, whose experts are told; from the first to the
  /// end.
  Status leave(std::size_t l);

  std::span<const float> x_;
  std::unique_ptr<SupervisedTask> task_;
  Transformer& model_;
  float share_;  // of this node's loss in the mean of all
  std::vector<std::unique_ptr<ExpertLayer>> layers_;
  std::vector<ProgramStage> stages_;
  std::vector<std::uint32_t> batch_;
  std::vector<float> features_;
  std::size_t positions_ = 0;                    // rows of the round
  std::vector<std::span<const float>> reached_;  // by layer, what its mlp sees
  std::vector<float> score_gradient_;            // of the classes' scores
  std::vector<float> from_experts_;              // ∂loss/∂rows by way of the experts
  std::vector<float> room_;
  std::vector<float> gradient_;
};

ExpertProgram::ExpertProgram(const ProgramNode& node, std::unique_ptr<SupervisedTask> task,
                             std::size_t examples, const ExpertsAtNodes& how)
    : x_(node.parameters()),
      task_(std::move(task)),
      model_(*task_->model().with_experts()),
      share_(1.0F / static_cast<float>(node.grid().nodes())),
      reached_(model_.layers()),
      gradient_(x_.size()) {
  for (std::size_t l = 0; l < model_.layers(); ++l) {
    layers_.push_back(std::make_unique<ExpertLayer>(node.member("expert"),
                                                    options_of_layer(model_, l, examples, how)));
    layers_.back()->inside.resize(exchange(l).own_experts());
  }
  list_stages();
}

void ExpertProgram::list_stages() {
  const auto add = [this](std::string name, Collective* collective, auto compute) {
    stages_.push_back({std::move(name), std::move(compute), collective, 0});
  };
  const std::size_t layers = layers_.size();
  for (std::size_t l = 0; l < layers; ++l) {
    add(fmt::format("rows of layer {}", l), &exchange(l).dispatching(),
        [this, l](const RoundInput& in) { return reach(l, in.round); });
    add(fmt::format("experts of layer {}", l), &exchange(l).combining(),
        [this, l](const RoundInput&) { return experts_forward(l); });
  }
  add("loss", &exchange(layers - 1).dispatching_gradient(),
      [this](const RoundInput&) { return judge(); });
  for (std::size_t l = layers; l-- > 0;) {
    add(fmt::format("experts of layer {}, back", l), &exchange(l).combining_gradient(),
        [this, l](const RoundInput&) { return experts_backward(l); });
    add(fmt::format("layer {}, back", l), l > 0 ? &exchange(l - 1).dispatching_gradient() : nullptr,
        [this, l](const RoundInput&) { return leave(l); });
  }
}

void ExpertProgram::begin(Round round) {
  const auto rows = task_->batch(round);
  batch_.assign(rows.begin(), rows.end());
  task_->read_features(batch_, features_);
  positions_ = batch_.size() * model_.positions();
  model_.begin(x_, features_, batch_.size());
}

Status ExpertProgram::come_back(std::size_t l) {
  if (Status status = exchange(l).finish(model_.branch()); !status.ok()) {
    return status;
  }
  model_.leave_mlp();
  return {};
}

Status ExpertProgram::reach(std::size_t l, Round round) {
  if (l == 0) {
    begin(round);
  } else if (Status status = come_back(l - 1); !status.ok()) {
    return status;
  }
  reached_[l] = model_.reach_mlp(l, x_);
  ExpertLayer& layer = *layers_[l];
  layer.scores.resize(positions_ * mlp(l).experts());
  mlp(l).score(x_, rows_at(l), layer.scores);
  return layer.exchange.dispatch(reached_[l], layer.scores);
}

Status ExpertProgram::experts_forward(std::size_t l) {
  ExpertExchange& rows = exchange(l);
  rows.arrive();
  for (std::size_t e = 0; e < rows.own_experts(); ++e) {
    std::vector<float>& inside = layers_[l]->inside[e];
    inside.resize(rows.rows(e).size() / model_.width() * mlp(l).inside());
    mlp(l).forward(rows.first_expert() + e, x_,
                   {.x = rows.rows(e), .inside = inside, .dy = {}, .inside_change = {}},
                   rows.results(e));
  }
  rows.combine();
  return {};
}

Status ExpertProgram::judge() {
  const std::size_t last = layers_.size() - 1;
  if (Status status = come_back(last); !status.ok()) {
    return status;
  }
  const auto scores = model_.end(x_);
  score_gradient_.resize(scores.size());
  (void)task_->loss_of(batch_, scores, score_gradient_);
  model_.begin_backward(x_, score_gradient_, gradient_);
  exchange(last).dispatch_gradient(model_.delta());
  return {};
}

Status ExpertProgram::experts_backward(std::size_t l) {
  ExpertExchange& rows = exchange(l);
  if (Status status = rows.arrive_gradient(); !status.ok()) {
    return status;
  }
  for (std::size_t e = 0; e < rows.own_experts(); ++e) {
    std::vector<float>& inside = layers_[l]->inside[e];
    room_.resize(inside.size());
    const std::size_t expert = rows.first_expert() + e;
    mlp(l).backward(expert, x_,
                    {.x = rows.rows(e),
                     .inside = inside,
                     .dy = rows.result_gradient(e),
                     .inside_change = room_},
                    gradient_, rows.row_gradient(e));
    for (float& value : mlp(l).parameters_of(expert).of(std::span(gradient_))) {
      value *= share_;  // a sum over the nodes, each of whose losses is a mean
    }
  }
  rows.combine_gradient();
  return {};
}

Status ExpertProgram::leave(std::size_t l) {
  ExpertLayer& layer = *layers_[l];
  layer.score_gradient.resize(layer.scores.size());
  from_experts_.resize(positions_ * model_.width());
  if (Status status = layer.exchange.finish_gradient(from_experts_, layer.score_gradient);
      !status.ok()) {
    return status;
  }
  mlp(l).add_balance(layer.scores, layer.exchange.chosen(), layer.score_gradient);
  const std::span<float> dx = model_.branch();
  mlp(l).score_backward(x_, rows_at(l), layer.score_gradient, gradient_,
                        mutable_view(dx, positions_, model_.width()));
  std::ranges::transform(dx, from_experts_, dx.begin(), std::plus<>());
  model_.leave_mlp_backward(l, x_, gradient_);
  if (l > 0) {
    exchange(l - 1).dispatch_gradient(model_.delta());
  } else {
    model_.end_backward(gradient_);
  }
  return {};
}

/// The task without gradients.
class RestingTask final : public TaskDecorator {
 public:
  using TaskDecorator::TaskDecorator;

  double loss_and_gradient(Round /*round*/, std::span<const float> /*parameters*/,
                           std::span<float> gradient) override {
    std::ranges::fill(gradient, 0.0F);
    return std::numeric_limits<double>::quiet_NaN();
  }
};

/// Throws Error for a compressor by which rows of `width` elements, or their gradients, cannot go.
void check_compressor(const std::string& spec, std::size_t width) {
  std::string contract;
  try {
    contract = make_compressor(spec, ContractKind::unbiased)->contract(width).describe();
  } catch (const Error& error) {
    throw error.renamed("expert_compressor");
  }
  for (const Carried data : {Carried::activation, Carried::activation_gradient}) {
    try {
      const RowCodec codec(width, {.data = data, .compressor = spec}, host_ops());
    } catch (const Error&) {
      refuse("expert_compressor", spec,
             fmt::format("rows that go to experts, and their gradients, take unbiased compressors "
                         "that give each element 8 bits or more, and each row as many bytes; the "
                         "contract of this one for a row of {} elements is: {}; take quant:8, or "
                         "none",
                         width, contract));
    }
  }
}

/// Throws Error for rows of `width` elements that cannot go as they are to.
void check_rows(const ExpertsAtNodes& how, std::size_t width) {
  if (!(how.capacity >= 0 && std::isfinite(how.capacity))) {
    refuse("expert_capacity", fmt::format("{}", how.capacity),
           "take a factor above 0, usually 1 to 2.5, or 0 for experts that take every row");
  }
  check_compressor(how.compressor, width);
}

/// Throws Error where an expert would take more rows of a batch than a node can send it.
void check_room(const Transformer& model, std::size_t examples, const ExpertsAtNodes& how) {
  const ExpertOptions layer = options_of_layer(model, 0, examples, how);
  const std::size_t choices = ExpertGate(layer.gate, layer.experts).choices();
  if (const std::size_t rows = rows_to_expert(layer, choices); rows > kMostRowsToExpert) {
    refuse("batch", fmt::format("{}", examples),
           fmt::format("an expert takes up to {} of a node's {} positions, and {} are the most; "
                       "take a smaller batch, or give a lower ",
                       rows, layer.tokens, kMostRowsToExpert) +
               mention("expert_capacity"));
  }
}

}  // namespace

std::shared_ptr<const PlacedModel> place_experts(std::shared_ptr<const TaskFactory> tasks,
                                                 const ExpertsAtNodes& how) {
  const TaskOptions& options = tasks->options();
  const auto sample = tasks->data().dataset ? tasks->make_supervised(0) : nullptr;
  const Transformer* const model = sample ? sample->model().with_experts() : nullptr;
  if (model == nullptr) {
    refuse("experts_at", "nodes",
           fmt::format("{} has no experts; take a text and a model that has some, as "
                       "transformer:2,64,4,experts=8",
                       options.model.empty() ? tasks->data().spec : options.model));
  }
  check_rows(how, model->width());
  const auto nodes = static_cast<std::size_t>(options.nodes);
  const std::size_t experts = model->experts(0).experts();
  if (experts % nodes != 0) {
    refuse("model", options.model,
           fmt::format("the {} experts of a layer are dealt evenly to {} nodes; take a multiple of "
                       "{}, as experts={}, or give ",
                       experts, nodes, nodes, (experts / nodes + 1) * nodes) +
               mention("nodes") + fmt::format(" a number that divides {}", experts));
  }
  check_room(*model, options.batch, how);
  auto placed = std::make_shared<PlacedModel>();
  placed->own.resize(nodes);
  for (std::size_t l = 0; l < model->layers(); ++l) {
    for (std::size_t e = 0; e < experts; ++e) {
      placed->own[e / (experts / nodes)].push_back(model->experts(l).parameters_of(e));
    }
  }
  placed->settings = fmt::format("experts at nodes, rows by {}, capacity {}, {}", how.compressor,
                                 how.capacity, options.model);
  placed->build = [tasks, how](const ProgramNode& node) {
    return std::make_unique<ExpertProgram>(node, tasks->make_supervised(node.rank()),
                                           tasks->options().batch, how);
  };
  return placed;
}

std::unique_ptr<Task> without_gradients(std::unique_ptr<Task> task) {
  return std::make_unique<RestingTask>(std::move(task));
}

}  // namespace sotto
