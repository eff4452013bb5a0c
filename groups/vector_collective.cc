#include <sotto/groups/vector_collective.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/compress/none.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

constexpr std::string_view kVector = "vector that is sent";

std::size_t elements_of(const BlockSchedule& schedule) {
  const Chunk last = schedule.blocks.back();
  return last.offset + last.size;
}

std::size_t longest_block(const BlockSchedule& schedule) {
  return std::ranges::max(schedule.blocks, {}, &Chunk::size).size;
}

bool has(const BlockSchedule& schedule, BlockTransfer transfer) {
  return std::ranges::any_of(
      schedule.steps, [transfer](const ScheduleStep& step) { return step.transfer == transfer; });
}

std::size_t most_senders(const BlockSchedule& schedule) {
  std::size_t most = 0;
  for (const ScheduleStep& step : schedule.steps) {
    most = std::max(most, step.receives.size());
  }
  return most;
}

/// A frame for each receiver of a sum, else one for all of them.
std::vector<std::size_t> parcels_for(const BlockSchedule& schedule, const Encoding& encoding,
                                     const VectorBound& bound) {
  std::size_t parcels = 1;
  for (const ScheduleStep& step : schedule.steps) {
    parcels = std::max(parcels, step.transfer == BlockTransfer::sum ? step.sends.size() : 1);
  }
  // The encoder that the collective has is made, with its checks, when the rooms are there.
  const std::size_t bytes = make_compressor(encoding.compressor)
                                ->max_bytes(std::max(longest_block(schedule), bound.block));
  return std::vector<std::size_t>(parcels, bytes);
}

std::string_view form_name(CollectiveForm form) {
  switch (form) {
    case CollectiveForm::direct:
      return "direct";
    case CollectiveForm::tree:
      return "tree";
    default:
      return "ring";
  }
}

void require_form(const VectorOptions& options, CollectiveForm refused, std::string_view instead) {
  if (options.form == refused) {
    refuse("form", form_name(refused),
           fmt::format("this collective has no such schedule; take {}", instead));
  }
}

std::unique_ptr<VectorCollective> make_formed(std::string_view kind, GroupMember member,
                                              const VectorOptions& options,
                                              BlockSchedule (*schedule)(CollectiveForm, int, int,
                                                                        std::size_t)) {
  require_form(options, CollectiveForm::tree, "direct or ring");
  if (options.row == 0 || options.elements % options.row != 0) {
    refuse("row", fmt::format("{}", options.row),
           fmt::format("{} elements are no whole rows; take a divisor", options.elements));
  }
  const Group& group = member.group;
  BlockSchedule part =
      schedule(options.form, group.size(), group.position, options.elements / options.row);
  for (Chunk& block : part.blocks) {
    block = {.offset = block.offset * options.row, .size = block.size * options.row};
  }
  return std::make_unique<VectorCollective>(std::move(member),
                                            fmt::format("{}, {}", kind, form_name(options.form)),
                                            std::move(part), options.encoding, options.bound);
}

void require_root(const Group& group, int root) {
  if (root < 0 || root >= group.size()) {
    refuse("root", fmt::format("{}", root),
           fmt::format("the group has the positions 0 to {}; take one of these", group.size() - 1));
  }
}

}  // namespace

VectorCollective::VectorCollective(GroupMember member, std::string name, BlockSchedule schedule,
                                   const Encoding& encoding, const VectorBound& bound)
    : Collective(std::move(member), most_senders(schedule), parcels_for(schedule, encoding, bound)),
      name_(std::move(name)),
      schedule_(std::move(schedule)),
      bound_(bound),
      encoding_(encoding),
      compressor_(make_encoder(encoding, longest_block(schedule_), node().ops())),
      held_(mail_.outgoing().size()),
      held_block_(schedule_.blocks.size()),
      at_(schedule_.steps.size()) {
  refuse_keyed(encoding);
  if (!exact() && has(schedule_, BlockTransfer::add)) {
    refuse("compressor", encoding.compressor,
           "a ring encodes partial sums at each hop, and the errors add up; take the form direct, "
           "or none");
  }
  if (has(schedule_, BlockTransfer::sum)) {
    own_.resize(held_.size());
  }
  if (encoding_.memory == ErrorMemory::feedback) {
    const bool several = schedule_.blocks.size() > 1;
    const bool receives_first =
        schedule_.steps.empty() || !schedule_.steps.front().receives.empty();
    const bool makes = has(schedule_, BlockTransfer::sum) ||
                       (!several && (has(schedule_, BlockTransfer::exchange) || !receives_first));
    error_.resize(makes ? elements() : 0);
    own_error_.resize(several ? own_block().size : 0);
  }
}

std::size_t VectorCollective::elements() const { return elements_of(schedule_); }

Chunk VectorCollective::own_block() const { return schedule_.blocks[summed_index()]; }

std::string VectorCollective::signature() const {
  const bool alike = bound_.elements == 0;
  return fmt::format("{} of {}{} elements by {} ({}, {}) among {} of group {}", name_,
                     alike ? "" : "up to ", alike ? elements() : bound_.elements,
                     compressor_->spec(), carried_name(encoding_.data),
                     memory_name(encoding_.memory), members(), group().number);
}

std::uint64_t VectorCollective::parts() const {
  return static_cast<std::uint64_t>(schedule_.phases) * static_cast<std::uint64_t>(members());
}

ExchangeVolume VectorCollective::volume() const {
  ExchangeVolume volume;
  const auto edge = [this](std::size_t index) {
    const std::size_t elements = schedule_.blocks[index].size;
    return EdgeVolume{.frames = 1,
                      .elements = elements,
                      .bytes = kFrameHeaderBytes + compressor_->max_bytes(elements)};
  };
  for (const ScheduleStep& step : schedule_.steps) {
    for (const BlockHop& hop : step.sends) {
      volume.sent[group().rank_of(hop.position)] += edge(hop.block);
    }
    for (const BlockHop& hop : step.receives) {
      volume.received[group().rank_of(hop.position)] += edge(hop.block);
    }
  }
  return volume;
}

void VectorCollective::begin(std::span<float> v) {
  check(!busy(), "a collective does one thing at a time");
  check(v.size() == elements(), "a vector has the elements of its collective");
  v_ = v;
  at_ = 0;
  held_block_ = schedule_.blocks.size();
}

Result<bool> VectorCollective::next_exchange(Exchange& out) {
  if (open() || !busy()) {
    return false;
  }
  if (Status status = post(schedule_.steps[at_]); !status.ok()) {
    return status;
  }
  return mail_.next_exchange(out);
}

Result<std::size_t> VectorCollective::encode(std::size_t index, std::size_t hop,
                                             std::span<std::byte> out) {
  const auto x = block(index);
  if (Status status = node().require_finite(x, kVector); !status.ok()) {
    return status;
  }
  const auto number = static_cast<std::uint64_t>(schedule_.steps[at_].phase) *
                      static_cast<std::uint64_t>(members());
  const RandomKey rounding = key(number + hop);
  std::size_t bytes = 0;
  if (encoding_.memory == ErrorMemory::feedback) {
    const bool published =
        schedule_.blocks.size() > 1 && schedule_.steps[at_].transfer == BlockTransfer::publish;
    const auto error = published ? std::span<float>(own_error_)
                                 : schedule_.blocks[index].of(std::span<float>(error_));
    node().ops().axpy(1, x, error);
    if (Status status = node().require_finite(error, "vector with its error"); !status.ok()) {
      return status;
    }
    bytes = compressor_->encode_residual(error, rounding, out);
  } else {
    bytes = compressor_->encode(x, rounding, out);
  }
  saturated_ += compressor_->saturated();
  return bytes;
}

void VectorCollective::hold(std::size_t index, std::span<const std::byte> payload) {
  std::ranges::copy(payload, held_.begin());
  held_bytes_ = payload.size();
  held_block_ = index;
}

Result<std::size_t> VectorCollective::make_common(std::size_t index, std::span<std::byte> out) {
  const BlockTransfer transfer = schedule_.steps[at_].transfer;
  if (transfer == BlockTransfer::publish && held_block_ == index) {
    std::ranges::copy(std::span(held_).first(held_bytes_), out.begin());
    return held_bytes_;
  }
  auto bytes = encode(index, 0, out);
  if (!bytes || transfer != BlockTransfer::publish) {
    return bytes;
  }
  hold(index, out.first(*bytes));
  if (!exact()) {
    // The maker takes what it sends, so that all hold the same bits.
    if (Status status = replace(out.first(*bytes), block(index)); !status.ok()) {
      return node().fault(status.fault(), "own encoding: " + status.message());
    }
  }
  return bytes;
}

Status VectorCollective::post(const ScheduleStep& step) {
  to_.clear();
  from_.clear();
  parcels_.clear();
  elements_in_.clear();
  for (const BlockHop& hop : step.receives) {
    from_.push_back(member_.edge(hop.position));
    elements_in_.push_back(schedule_.blocks[hop.block].size);
  }
  for (std::size_t i = 0; i < step.sends.size(); ++i) {
    const BlockHop& hop = step.sends[i];
    to_.push_back(member_.edge(hop.position));
    if (one_frame(step) && i > 0) {
      parcels_.push_back(parcels_.front());
      continue;
    }
    const auto bytes = one_frame(step) ? make_common(hop.block, mail_.outgoing())
                                       : encode(hop.block, static_cast<std::size_t>(hop.position),
                                                mail_.outgoing(i));
    if (!bytes) {
      return bytes.status();
    }
    parcels_.push_back({.elements = schedule_.blocks[hop.block].size, .payload_bytes = *bytes});
  }
  if (sums(step)) {
    const auto bytes = encode(summed_index(), own_index(), own_);
    if (!bytes) {
      return bytes.status();
    }
    own_bytes_ = *bytes;
  }
  const ExchangePlan plan{.tag = tag(step.phase),
                          .compressor = compressor_->wire_id(),
                          .to = to_,
                          .from = from_,
                          .elements_out = parcels_.empty() ? 0 : parcels_.front().elements,
                          .elements_in = 0,
                          .elements_by_sender = elements_in_};
  if (one_frame(step)) {
    mail_.post(plan, parcels_.empty() ? 0 : parcels_.front().payload_bytes);
  } else {
    mail_.post_each(plan, parcels_);
  }
  return {};
}

Status VectorCollective::replace(std::span<const std::byte> payload, std::span<float> y) const {
  if (exact()) {
    return decode_none(payload, y, node().ops());
  }
  node().ops().fill(0, y);
  return compressor_->decode_add(payload, 1, y);
}

Status VectorCollective::take_sum(const ScheduleStep& step) {
  const auto sum = block(summed_index());
  node().ops().fill(0, sum);
  std::size_t edge = 0;
  for (int from = 0; from < members(); ++from) {
    const bool own = from == position();
    const auto payload =
        own ? std::span<const std::byte>(own_).first(own_bytes_) : mail_.payload(edge);
    if (Status decoded = compressor_->decode_add(payload, 1, sum); !decoded.ok()) {
      return own ? node().fault(decoded.fault(), "own encoding: " + decoded.message())
                 : mail_.refuse(edge, decoded);
    }
    edge += own ? 0 : 1;
  }
  check(edge == step.receives.size(), "a sum is of all members' blocks");
  return node().require_finite(sum, "sum over the group");
}

Status VectorCollective::take_blocks(const ScheduleStep& step) {
  for (std::size_t edge = 0; edge < step.receives.size(); ++edge) {
    const auto payload = mail_.payload(edge);
    const std::size_t index = step.receives[edge].block;
    const Status decoded = step.transfer == BlockTransfer::add
                               ? compressor_->decode_add(payload, 1, block(index))
                               : replace(payload, block(index));
    if (!decoded.ok()) {
      return mail_.refuse(edge, decoded);
    }
    const bool goes_on =
        at_ + 1 < schedule_.steps.size() &&
        schedule_.steps[at_ + 1].transfer == BlockTransfer::publish &&
        std::ranges::any_of(schedule_.steps[at_ + 1].sends,
                            [index](const BlockHop& hop) { return hop.block == index; });
    if (step.transfer == BlockTransfer::publish && goes_on) {
      hold(index, payload);
    }
  }
  return {};
}

Status VectorCollective::complete(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange); !status.ok()) {
    return status;
  }
  const ScheduleStep& step = schedule_.steps[at_];
  if (Status status = sums(step) ? take_sum(step) : take_blocks(step); !status.ok()) {
    return status;
  }
  mail_.close();
  ++at_;
  return {};
}

void VectorCollective::save(ByteBuffer& out) const {
  write_floats(error_, out);
  write_floats(own_error_, out);
  compressor_->save(out);
}

Status VectorCollective::load(ByteReader& in) {
  if (Status status = read_floats(in, "error", error_); !status.ok()) {
    return status;
  }
  const Status status = read_floats(in, "error of the own block", own_error_);
  return status.ok() ? compressor_->load(in) : status;
}

std::unique_ptr<VectorCollective> make_broadcast(GroupMember member, const VectorOptions& options,
                                                 int root) {
  require_form(options, CollectiveForm::ring, "direct or tree");
  const Group& group = member.group;
  require_root(group, root);
  BlockSchedule part =
      broadcast_schedule(options.form, group.size(), group.position, root, options.elements);
  return std::make_unique<VectorCollective>(
      std::move(member), fmt::format("broadcast from {}, {}", root, form_name(options.form)),
      std::move(part), options.encoding, options.bound);
}

std::unique_ptr<VectorCollective> make_reduce(GroupMember member, const VectorOptions& options,
                                              int root) {
  require_form(options, CollectiveForm::ring, "direct");
  require_form(options, CollectiveForm::tree, "direct");
  const Group& group = member.group;
  require_root(group, root);
  BlockSchedule part = reduce_schedule(group.size(), group.position, root, options.elements);
  return std::make_unique<VectorCollective>(std::move(member), fmt::format("reduce to {}", root),
                                            std::move(part), options.encoding, options.bound);
}

std::unique_ptr<VectorCollective> make_all_gather(GroupMember member,
                                                  const VectorOptions& options) {
  return make_formed("all-gather", std::move(member), options, all_gather_schedule);
}

std::unique_ptr<VectorCollective> make_reduce_scatter(GroupMember member,
                                                      const VectorOptions& options) {
  return make_formed("reduce-scatter", std::move(member), options, reduce_scatter_schedule);
}

std::unique_ptr<VectorCollective> make_all_reduce(GroupMember member,
                                                  const VectorOptions& options) {
  return make_formed("all-reduce", std::move(member), options, all_reduce_schedule);
}

std::unique_ptr<VectorCollective> make_ring_shift(GroupMember member, const VectorOptions& options,
                                                  int by) {
  const Group& group = member.group;
  BlockSchedule part = ring_shift_schedule(group.size(), group.position, by, options.elements);
  return std::make_unique<VectorCollective>(std::move(member), fmt::format("ring shift by {}", by),
                                            std::move(part), options.encoding, options.bound);
}

CollectiveForm usual_broadcast_form(int members) {
  return members <= 3 ? CollectiveForm::direct : CollectiveForm::tree;
}

CollectiveForm usual_form(int members, const Encoding& encoding, bool sums) {
  const bool compressed = encoding.compressor != "none";
  return members <= 16 || (sums && compressed) ? CollectiveForm::direct : CollectiveForm::ring;
}

}  // namespace sotto
