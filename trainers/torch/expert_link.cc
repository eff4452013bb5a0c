#include <sotto/trainers/torch/expert_link.h>

#include <algorithm>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/autograd.h>

#include <sotto/base/error.h>
#include <sotto/groups/program.h>

#include "link_rounds.h"

namespace sotto::torch {

/// One exchange of the link: a layer's forward or backward pass, and what this node gives and gets.
struct ExpertTurn {
  int layer = 0;
  bool back = false;
  bool graph = false;  ///< the forward pass is recorded
  std::vector<float> rows;
  std::vector<float> out;
  std::vector<float> score_gradient;
  const ExpertFunction* experts = nullptr;
  std::exception_ptr thrown;  ///< what the caller's experts threw
};

/// A layer's exchange, and what its backward pass needs of its forward pass.
class LinkedLayer {
 public:
  LinkedLayer(const ProgramNode& node, const ExpertOptions& options, ExpertTurn& turn)
      : width_(options.width), exchange_(node.everyone(), options), turn_(&turn) {}

  ExpertExchange& exchange() { return exchange_; }
  const ExpertExchange& exchange() const { return exchange_; }
  /// Passes so far. A backward pass ends a visit as another forward pass does.
  std::uint64_t visits() const { return visits_; }
  void visit() { ++visits_; }
  /// The scores of the pass under way, which the exchange views.
  std::vector<float>& scores() { return scores_; }

  Status dispatch() { return exchange_.dispatch(turn_->rows, scores_); }
  /// Runs the experts on the rows that came.
  Status run_experts() {
    exchange_.arrive();
    return guarded([this] {
      rows_.clear();
      results_.clear();
      const ::torch::AutoGradMode recording(turn_->graph);
      for (std::size_t e = 0; e < exchange_.own_experts(); ++e) {
        rows_.push_back(tensor_of(exchange_.rows(e), width_).set_requires_grad(turn_->graph));
        results_.push_back((*turn_->experts)(exchange_.first_expert() + e, rows_.back()));
        require_shape(e);
        std::ranges::copy(floats_of(results_.back()), exchange_.results(e).begin());
      }
      exchange_.combine();
    });
  }
  /// Runs the experts' backward pass, which adds to the gradients of their parameters.
  Status run_backward() {
    if (Status status = exchange_.arrive_gradient(); !status.ok()) {
      return status;
    }
    return guarded([this] {
      for (std::size_t e = 0; e < exchange_.own_experts(); ++e) {
        const auto gradient = tensor_of(exchange_.result_gradient(e), width_);
        if (results_[e].requires_grad()) {
          ::torch::autograd::backward({results_[e]}, {gradient.to(results_[e].options())});
        }
        const ::torch::Tensor at_rows = rows_[e].grad();
        if (at_rows.defined()) {
          std::ranges::copy(floats_of(at_rows), exchange_.row_gradient(e).begin());
        } else {
          std::ranges::fill(exchange_.row_gradient(e), 0.0F);
        }
      }
      rows_.clear();
      results_.clear();
      exchange_.combine_gradient();
    });
  }

 private:
  /// Runs code of the caller's. What it throws is kept for the caller, and ends the round.
  template <typename Code>
  Status guarded(const Code& code) {
    try {
      code();
      return {};
    } catch (...) {
      turn_->thrown = std::current_exception();
      return {Fault::unexpected, "this node's experts have thrown"};
    }
  }
  void require_shape(std::size_t e) const {
    if (results_[e].sizes() != rows_[e].sizes()) {
      refuse("experts", fmt::format("{}", fmt::join(results_[e].sizes(), " × ")),
             fmt::format("an expert makes {} of these rows", fmt::join(rows_[e].sizes(), " × ")));
    }
  }

  std::size_t width_;
  ExpertExchange exchange_;
  ExpertTurn* turn_;
  std::uint64_t visits_ = 0;
  std::vector<float> scores_;
  std::vector<::torch::Tensor> rows_;     // rows that came, by own expert
  std::vector<::torch::Tensor> results_;  // what the experts made of them, with its graph
};

/// A link whose rounds carry one pass of one layer each, the turn's.
class ExpertProgram final : public Program {
 public:
  ExpertProgram(const ProgramNode& node, const ExpertLinkOptions& options, ExpertTurn& turn)
      : turn_(&turn) {
    for (int number = 0; number < options.layers; ++number) {
      layers_.push_back(std::make_unique<LinkedLayer>(node, options.layer, turn));
      add_stages(number);
    }
  }
  std::span<const ProgramStage> stages() const override { return stages_; }
  LinkedLayer& layer(int number) { return *layers_.at(static_cast<std::size_t>(number)); }

 private:
  using Work = std::function<Status()>;

  void add_stages(int number) {
    LinkedLayer& layer = *layers_.back();
    ExpertExchange& exchange = layer.exchange();
    add(
        "tokens", number, false, [&layer] { return layer.dispatch(); }, &exchange.dispatching());
    add(
        "experts", number, false, [&layer] { return layer.run_experts(); }, &exchange.combining());
    add(
        "outputs", number, false, [this, &exchange] { return exchange.finish(turn_->out); },
        nullptr);
    add(
        "gradients", number, true,
        [this, &exchange] {
          exchange.dispatch_gradient(turn_->rows);
          return Status();
        },
        &exchange.dispatching_gradient());
    add(
        "experts' gradients", number, true, [&layer] { return layer.run_backward(); },
        &exchange.combining_gradient());
    add(
        "gradients of tokens", number, true,
        [this, &exchange] { return exchange.finish_gradient(turn_->out, turn_->score_gradient); },
        nullptr);
  }
  /// A stage that works in the turns of its layer and direction.
  void add(const char* name, int number, bool back, Work work, Collective* collective) {
    stages_.push_back({name,
                       [this, number, back, work = std::move(work)](const RoundInput&) {
                         const bool due = turn_->layer == number && turn_->back == back;
                         return due ? work() : Status();
                       },
                       collective, 0, true});
  }

  ExpertTurn* turn_;
  std::vector<std::unique_ptr<LinkedLayer>> layers_;
  std::vector<ProgramStage> stages_;
};

namespace {

constexpr std::uint64_t kExpertRunId = 0x6D6F65;  // "moe"; what differs is in the settings' stamp

/// Options whose number of layers is one, for initializers.
ExpertLinkOptions with_layers(ExpertLinkOptions options) {
  if (options.layers < 1) {
    refuse("layers", fmt::format("{}", options.layers), "take 1 or more");
  }
  return options;
}

std::string shape_of(const ::torch::Tensor& tensor) {
  return fmt::format("{}", fmt::join(tensor.sizes(), " × "));
}

}  // namespace

/// What a link consists of, in the order in which the parts use each other.
struct ExpertLink::Run {
  explicit Run(ExpertLinkOptions given)
      : options(with_layers(std::move(given))),
        place(settled(options.place)),
        algorithm({.rank = *place.rank,
                   .nodes = *place.nodes,
                   .grid = fmt::format("expert={}", *place.nodes),
                   .parameters = parameters,
                   .seed = options.seed,
                   .run_id = kExpertRunId},
                  [this](const ProgramNode& node) {
                    auto made = std::make_unique<ExpertProgram>(node, options, turn);
                    program = made.get();
                    return made;
                  }),
        rounds(algorithm, place, kExpertRunId) {}

  LinkedLayer& layer(int number) const {
    if (number < 0 || number >= options.layers) {
      refuse("layer", fmt::format("{}", number),
             fmt::format("the link has the layers 0 to {}", options.layers - 1));
    }
    return program->layer(number);
  }
  /// Carries the turn, and throws what the experts threw in it.
  void carry() {
    layer(turn.layer).visit();
    turn.thrown = nullptr;
    try {
      rounds.carry(parameters);
    } catch (const RunFault&) {
      if (turn.thrown) {
        std::rethrow_exception(std::exchange(turn.thrown, nullptr));
      }
      throw;
    }
  }

  ExpertLinkOptions options;
  LinkPlace place;
  ExpertTurn turn;
  std::vector<float> parameters = std::vector<float>(1);  // a program has some; these are not used
  ExpertProgram* program = nullptr;
  ProgramAlgorithm algorithm;
  LinkRounds rounds;
};

/// What a graph remembers of a forward pass, for its backward pass.
struct ExpertVisit final : ::torch::CustomClassHolder {
  ExpertVisit(ExpertLink::Run* link, ::torch::Tensor kind, ::torch::Tensor score_kind)
      : run(link),
        layer(link->turn.layer),
        visit(link->layer(layer).visits()),
        like(std::move(kind)),
        like_scores(std::move(score_kind)) {}

  /// Carries the gradients at the layer's output.
  void carry_back(std::vector<float> gradient) const {
    if (run->layer(layer).visits() != visit) {
      refuse("layer", fmt::format("{}", layer),
             "its backward pass has been, or other tokens have gone under this number since; give "
             "layers that are under way at a time numbers of their own");
    }
    ExpertTurn& turn = run->turn;
    turn.layer = layer;
    turn.back = true;
    turn.rows = std::move(gradient);
    turn.out.resize(turn.rows.size());
    turn.score_gradient.resize(run->layer(layer).scores().size());
    run->carry();
  }

  ExpertLink::Run* run;
  int layer;
  std::uint64_t visit;          ///< passes that the layer had by then
  ::torch::Tensor like;         ///< an empty tensor of the tokens' type and device
  ::torch::Tensor like_scores;  ///< an empty tensor of the scores' type and device
};

/// Rows to the experts and back. The third argument only asks for a graph, which all nodes need.
struct ExpertRows : ::torch::autograd::Function<ExpertRows> {
  using Context = ::torch::autograd::AutogradContext;
  using Tensors = ::torch::autograd::tensor_list;

  static ::torch::Tensor forward(Context* context, const ::torch::Tensor& x,
                                 const ::torch::Tensor& scores, const ::torch::Tensor& /*asks*/,
                                 ExpertLink::Run* run) {
    ExpertTurn& turn = run->turn;
    turn.back = false;
    turn.rows = floats_of(x);
    turn.out.resize(turn.rows.size());
    run->layer(turn.layer).scores() = floats_of(scores);
    run->carry();
    context->saved_data["visit"] = ::torch::IValue::make_capsule(::c10::make_intrusive<ExpertVisit>(
        run, x.detach().new_empty({0}), scores.detach().new_empty({0})));
    return tensor_of(turn.out, run->options.layer.width).to(x.options());
  }
  static Tensors backward(Context* context, const Tensors& gradients) {
    const auto& visit = static_cast<ExpertVisit&>(*context->saved_data["visit"].toCapsule());
    visit.carry_back(floats_of(gradients[0]));
    const ExpertOptions& layer = visit.run->options.layer;
    const ExpertTurn& turn = visit.run->turn;
    return {tensor_of(turn.out, layer.width).to(visit.like.options()),
            tensor_of(turn.score_gradient, layer.experts).to(visit.like_scores.options()),
            ::torch::Tensor(), ::torch::Tensor()};
  }
};

ExpertLink::ExpertLink(ExpertLinkOptions options)
    : run_(std::make_unique<Run>(std::move(options))) {}

ExpertLink::~ExpertLink() = default;

std::size_t ExpertLink::first_expert() const { return exchange().first_expert(); }

std::size_t ExpertLink::own_experts() const { return exchange().own_experts(); }

::torch::Tensor ExpertLink::forward(const ::torch::Tensor& x, const ::torch::Tensor& scores,
                                    const ExpertFunction& experts, int layer) {
  const ExpertOptions& options = run_->options.layer;
  run_->layer(layer);
  if (x.dim() != 2 || x.size(1) != static_cast<std::int64_t>(options.width) ||
      x.size(0) > static_cast<std::int64_t>(options.tokens)) {
    refuse("x", shape_of(x),
           fmt::format("give rows of {} elements, at most {}", options.width, options.tokens));
  }
  if (scores.dim() != 2 || scores.size(0) != x.size(0) ||
      scores.size(1) != static_cast<std::int64_t>(options.experts)) {
    refuse(
        "scores", shape_of(scores),
        fmt::format("give {} × {}, a score for each token and expert", x.size(0), options.experts));
  }
  ExpertTurn& turn = run_->turn;
  turn.layer = layer;
  turn.graph = ::torch::GradMode::is_enabled();
  turn.experts = &experts;
  const auto asks = ::torch::zeros({1}, ::torch::requires_grad());
  return ExpertRows::apply(x, scores, asks, run_.get());
}

const ExpertExchange& ExpertLink::exchange(int layer) const {
  return run_->layer(layer).exchange();
}

std::uint64_t ExpertLink::bytes_sent() const { return run_->rounds.bytes_sent(); }

}  // namespace sotto::torch
