#include <sotto/trainers/torch/row_link.h>

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

/// One exchange of a link: a batch there, or its gradient back.
struct RowTurn {
  int batch = 0;
  bool back = false;
  std::vector<std::uint64_t> keys;
  std::vector<float> rows;  ///< rows or gradients that this node sends
};

namespace {

constexpr int kEnds = 2;
constexpr std::uint64_t kRunId = 0x726F776C;  // "rowl"; what differs is in the settings' stamp

/// The place in a link of two nodes. Throws Error (field "nodes") for another number of them.
LinkPlace of_two_ends(LinkPlace place) {
  if (place.nodes.value_or(kEnds) != kEnds) {
    refuse("nodes", fmt::format("{}", *place.nodes), "a link of rows has two nodes");
  }
  place.nodes = kEnds;
  return place;
}

/// A link whose rounds have one exchange each, the turn's.
class TurnProgram final : public Program {
 public:
  TurnProgram(const ProgramNode& node, const KeyedLinkOptions& options, const RowTurn& turn)
      : link_(node.everyone(), options), turn_(&turn) {
    for (int batch = 0; batch < options.batches; ++batch) {
      stages_.push_back({"rows", [this, batch](const RoundInput&) { return there(batch); },
                         &link_.carrying(batch), 0, true});
      stages_.push_back({"gradients", [this, batch](const RoundInput&) { return back(batch); },
                         &link_.returning(batch), 0, true});
    }
  }
  std::span<const ProgramStage> stages() const override { return stages_; }
  KeyedLink& link() { return link_; }

 private:
  Status there(int batch) {
    if (turn_->back || turn_->batch != batch) {
      return {};
    }
    return link_.sends() ? link_.send(batch, turn_->keys, turn_->rows)
                         : link_.receive(batch, turn_->keys);
  }
  Status back(int batch) {
    if (turn_->back && turn_->batch == batch) {
      if (link_.sends()) {
        link_.receive_gradient(batch);
      } else {
        link_.send_gradient(batch, turn_->rows);
      }
    }
    return {};
  }

  KeyedLink link_;
  const RowTurn* turn_;
  std::vector<ProgramStage> stages_;
};

std::vector<std::uint64_t> keys_of(const ::torch::Tensor& keys, const KeyedLinkOptions& link) {
  if (keys.dim() != 1 || keys.scalar_type() != ::torch::kInt64 ||
      static_cast<std::size_t>(keys.numel()) > link.rows) {
    refuse("keys",
           fmt::format("{} of {}", ::c10::toString(keys.scalar_type()),
                       fmt::join(keys.sizes(), " × ")),
           fmt::format("give int64 in one dimension, at most {}, one for each row", link.rows));
  }
  const auto here = keys.to(::torch::kCPU).contiguous();
  const auto* const values = here.data_ptr<std::int64_t>();
  return {values, values + here.numel()};
}

}  // namespace

/// What a link consists of, in the order in which the parts use each other.
struct RowLink::Run {
  explicit Run(RowLinkOptions given)
      : options(std::move(given)),
        place(settled(of_two_ends(options.place))),
        algorithm({.rank = *place.rank,
                   .nodes = kEnds,
                   .grid = "end=2",
                   .parameters = parameters,
                   .seed = options.seed,
                   .run_id = kRunId},
                  [this](const ProgramNode& node) {
                    auto made = std::make_unique<TurnProgram>(node, options.link, turn);
                    link = &made->link();
                    return made;
                  }),
        rounds(algorithm, place, kRunId) {}

  /// Rows that have gone under a batch's number so far.
  std::uint64_t& visits_of(int batch) { return visits.at(static_cast<std::size_t>(batch)); }
  /// Carries the turn's batch, of which this node sends `rows`.
  void carry_there(std::vector<float> rows) {
    ++visits_of(turn.batch);
    turn.back = false;
    turn.rows = std::move(rows);
    carry();
  }
  /// Carries the turn.
  void carry() { rounds.carry(parameters); }

  RowLinkOptions options;
  LinkPlace place;
  RowTurn turn;
  std::vector<float> parameters = std::vector<float>(1);  // a program has some; these are not used
  KeyedLink* link = nullptr;
  ProgramAlgorithm algorithm;
  LinkRounds rounds;
  std::vector<std::uint64_t> visits = std::vector<std::uint64_t>(
      static_cast<std::size_t>(options.link.batches));  // checked by the link
};

/// What a graph remembers of an exchange, for its backward pass.
struct RowVisit final : ::torch::CustomClassHolder {
  RowVisit(RowLink::Run* link, ::torch::Tensor kind)
      : run(link), batch(link->turn.batch), visit(link->visits_of(batch)), like(std::move(kind)) {}

  static RowVisit& of(::torch::autograd::AutogradContext* context) {
    return static_cast<RowVisit&>(*context->saved_data["visit"].toCapsule());
  }
  static void save(::torch::autograd::AutogradContext* context, RowLink::Run* run,
                   ::torch::Tensor like) {
    context->saved_data["visit"] =
        ::torch::IValue::make_capsule(::c10::make_intrusive<RowVisit>(run, std::move(like)));
  }
  /// Carries the gradients of the rows, of which this node sends `rows`.
  void carry_back(std::vector<float> rows) const {
    if (run->visits_of(batch) != visit) {
      refuse("batch", fmt::format("{}", batch),
             "other rows have gone under this number since; give batches that are under way at a "
             "time numbers of their own");
    }
    run->turn.batch = batch;
    run->turn.back = true;
    run->turn.rows = std::move(rows);
    run->carry();
  }

  RowLink::Run* run;
  int batch;
  std::uint64_t visit;   ///< rows that had gone under the number
  ::torch::Tensor like;  ///< an empty tensor of the rows' type and device
};

/// Rows that leave; backward, their gradients come.
struct SendRows : ::torch::autograd::Function<SendRows> {
  using Context = ::torch::autograd::AutogradContext;
  using Tensors = ::torch::autograd::tensor_list;

  static ::torch::Tensor forward(Context* context, const ::torch::Tensor& rows, RowLink::Run* run) {
    run->carry_there(floats_of(rows));
    RowVisit::save(context, run, rows.detach().new_empty({0}));
    return ::torch::zeros({});
  }
  static Tensors backward(Context* context, const Tensors& gradients) {
    const RowVisit& visit = RowVisit::of(context);
    visit.carry_back({});
    auto gradient =
        tensor_of(visit.run->link->gradient(visit.batch), visit.run->options.link.width);
    gradient *= gradients[0];
    return {gradient.to(visit.like.options()), ::torch::Tensor()};
  }
};

/// Rows that come; backward, their gradients leave. The first argument only asks for a graph.
struct ReceiveRows : ::torch::autograd::Function<ReceiveRows> {
  using Context = ::torch::autograd::AutogradContext;
  using Tensors = ::torch::autograd::tensor_list;

  static ::torch::Tensor forward(Context* context, const ::torch::Tensor& asks, RowLink::Run* run) {
    run->carry_there({});
    RowVisit::save(context, run, asks.detach());
    return tensor_of(run->link->rows(run->turn.batch), run->options.link.width);
  }
  static Tensors backward(Context* context, const Tensors& gradients) {
    RowVisit::of(context).carry_back(floats_of(gradients[0]));
    return {::torch::Tensor(), ::torch::Tensor()};
  }
};

RowLink::RowLink(RowLinkOptions options) : run_(std::make_unique<Run>(std::move(options))) {}

RowLink::~RowLink() = default;

bool RowLink::sends() const { return run_->link->sends(); }

void RowLink::require_call(bool sending, int batch) const {
  if (sending != sends()) {
    refuse("rank", fmt::format("{}", *run_->place.rank),
           sending ? "it receives; rows are sent by the node `from`"
                   : "it sends; rows come to the node `to`");
  }
  if (batch < 0 || batch >= run_->options.link.batches) {
    refuse("batch", fmt::format("{}", batch),
           fmt::format("the link has the batches 0 to {}", run_->options.link.batches - 1));
  }
}

::torch::Tensor RowLink::send(const ::torch::Tensor& rows, const ::torch::Tensor& keys, int batch) {
  const KeyedLinkOptions& link = run_->options.link;
  require_call(true, batch);
  auto made = keys_of(keys, link);
  if (rows.dim() != 2 || rows.size(0) != keys.numel() ||
      rows.size(1) != static_cast<std::int64_t>(link.width)) {
    refuse("rows", fmt::format("{}", fmt::join(rows.sizes(), " × ")),
           fmt::format("{} keys have as many rows of {} elements", keys.numel(), link.width));
  }
  if (::torch::GradMode::is_enabled() && !rows.requires_grad()) {
    throw Error("rows",
                "they need no gradient, and the other end would send one: send under "
                "torch::NoGradGuard, at both ends");
  }
  run_->turn.batch = batch;
  run_->turn.keys = std::move(made);
  return SendRows::apply(rows, run_.get());
}

::torch::Tensor RowLink::receive(const ::torch::Tensor& keys, int batch) {
  require_call(false, batch);
  run_->turn.batch = batch;
  run_->turn.keys = keys_of(keys, run_->options.link);
  const auto asks = ::torch::zeros({1}, ::torch::requires_grad());
  return ReceiveRows::apply(asks, run_.get());
}

KeyedLink& RowLink::link() const { return *run_->link; }

std::uint64_t RowLink::bytes_sent() const { return run_->rounds.bytes_sent(); }

}  // namespace sotto::torch
