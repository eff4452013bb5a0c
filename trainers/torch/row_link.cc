#include <sotto/trainers/torch/row_link.h>

#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/autograd.h>

#include <sotto/base/error.h>
#include <sotto/comm/session.h>
#include <sotto/comm/transport.h>
#include <sotto/groups/program.h>
#include <sotto/trainers/driver.h>
#include <sotto/trainers/launch/launcher.h>
#include <sotto/trainers/node_transport.h>

#include "distributed_run.h"

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

RowLinkOptions with_rank(RowLinkOptions options) {
  if (!options.rank) {
    const LaunchedNode launched = launched_node("rank", "set it to 0 or 1", kEnds);
    options.rank = launched.rank;
    if (options.rendezvous.empty()) {
      options.rendezvous = launched.rendezvous;
    }
  }
  if (*options.rank < 0 || *options.rank >= kEnds) {
    refuse("rank", fmt::format("{}", *options.rank), "a link has the nodes 0 and 1");
  }
  if (!options.store) {
    options.store =
        make_store(options.rendezvous, *options.rank,
                   {.insecure = options.insecure,
                    .security = options.security,
                    .known_by = Deadline::after(options.timeout, &options.interrupted)});
  }
  return options;
}

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

::torch::Tensor tensor_of(std::span<const float> values, std::size_t width) {
  const auto columns = static_cast<std::int64_t>(width);
  const auto rows = static_cast<std::int64_t>(values.size() / width);
  ::torch::Tensor out = ::torch::empty({rows, columns});
  std::copy(values.begin(), values.end(), out.data_ptr<float>());
  return out;
}

std::vector<float> floats_of(const ::torch::Tensor& rows) {
  const auto here = rows.detach().to(::torch::kCPU, ::torch::kFloat32).contiguous();
  const auto* const values = here.data_ptr<float>();
  return {values, values + here.numel()};
}

}  // namespace

/// What a link consists of, in the order in which the parts use each other.
struct RowLink::Run {
  explicit Run(RowLinkOptions given)
      : options(with_rank(std::move(given))),
        algorithm({.rank = *options.rank,
                   .nodes = kEnds,
                   .grid = "end=2",
                   .parameters = parameters,
                   .seed = options.seed,
                   .run_id = kRunId},
                  [this](const ProgramNode& node) {
                    auto made = std::make_unique<TurnProgram>(node, options.link, turn);
                    link = &made->link();
                    return made;
                  }) {
    check_transport(options.transport, transport_options());
  }

  TransportOptions transport_options() const {
    TransportOptions made = sotto::transport_options(algorithm.peers(), *options.rank, kEnds);
    made.run_id = kRunId;
    made.store = options.store;
    made.bind = options.bind;
    made.insecure = options.insecure;
    made.security = options.security;
    made.connect_timeout = options.timeout;
    made.stop = options.interrupted;
    return made;
  }

  /// Meets the other node, once.
  void connect() {
    if (driver) {
      return;
    }
    require_ok(failed);
    session =
        make_session(options.store, *options.rank, kEnds, options.timeout, options.interrupted);
    failed = session->enter();
    require_ok(failed);
    auto made = make_transport(options.transport, transport_options());
    failed = made.status();
    require_ok(failed);
    transport = std::move(*made);
    // A round is one exchange, for which the caller waits.
    driver = std::make_unique<Driver>(algorithm, *transport,
                                      DriverOptions{.rank = *options.rank,
                                                    .overlap = false,
                                                    .timeout = options.timeout,
                                                    .interrupted = options.interrupted});
  }
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
  void carry() {
    connect();
    Status status = driver->begin_round();
    if (status.ok()) {
      status = driver->gradient_ready(input);
    }
    if (!status.ok()) {
      failed = status;
      driver.reset();
      transport.reset();  // so that the other end does not wait for this one
    }
    require_ok(status);
  }

  RowLinkOptions options;
  RowTurn turn;
  std::vector<float> parameters = std::vector<float>(1);  // a program has some; these are not used
  std::vector<float> input = std::vector<float>(1);
  KeyedLink* link = nullptr;
  ProgramAlgorithm algorithm;
  std::vector<std::uint64_t> visits = std::vector<std::uint64_t>(
      static_cast<std::size_t>(options.link.batches));  // checked by the link
  Status failed;
  std::shared_ptr<Session> session;  ///< claims the node's rank as long as it lives
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Driver> driver;
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
    refuse("rank", fmt::format("{}", *run_->options.rank),
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

std::uint64_t RowLink::bytes_sent() const {
  std::uint64_t bytes = 0;
  if (run_->driver) {
    for (const LinkTraffic& traffic : run_->driver->traffic()) {
      bytes += traffic.bytes;
    }
  }
  return bytes;
}

}  // namespace sotto::torch
