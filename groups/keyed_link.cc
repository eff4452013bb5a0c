#include <sotto/groups/keyed_link.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

Encoding keyed(const std::string& compressor) {
  return {.data = Carried::activation, .memory = ErrorMemory::keyed, .compressor = compressor};
}

/// Checks options, for initializers.
const KeyedLinkOptions& checked_link(const GroupMember& member, const KeyedLinkOptions& options) {
  constexpr std::size_t kMostBatches = 1 << 12;
  const int members = member.group.size();
  for (const auto& [field, at] : {std::pair("from", options.from), std::pair("to", options.to)}) {
    if (at < 0 || at >= members) {
      refuse(field, fmt::format("{}", at),
             fmt::format("the group has the positions 0 to {}", members - 1));
    }
  }
  if (options.from == options.to) {
    refuse("to", fmt::format("{}", options.to), "a link has two ends; take another member");
  }
  require_between("width", options.width, 1, kMostDimension);
  require_between("rows", options.rows, 1, kMostDimension / options.width);
  require_between("batches", static_cast<std::size_t>(std::max(0, options.batches)), 1,
                  kMostBatches);
  require_between("keys", options.keys, 1, std::numeric_limits<std::uint32_t>::max());
  return options;
}

std::size_t checked_keys(const KeyedLinkOptions& options, bool exact) {
  if (exact) {
    return 0;
  }
  const std::size_t element = KeyedMemory::element_bytes(options.memory);
  const std::size_t most = options.memory_limit / element / options.width;
  if (options.keys > most) {
    refuse("keys", fmt::format("{}", options.keys),
           fmt::format("rows of {} elements under as many keys take {} bytes at each end, and the "
                       "memory limit is {}; take at most {} keys, a higher limit, or plain "
                       "activations of 8 bits",
                       options.width, options.keys * options.width * element, options.memory_limit,
                       most));
  }
  return options.keys;
}

}  // namespace

/// What the collectives of one link have in common.
struct KeyedLink::Shared {
  Shared(const GroupMember& at, const KeyedLinkOptions& chosen)
      : member(at),
        options(checked_link(at, chosen)),
        later(options.width, keyed(options.compressor), at.node->ops()),
        first(options.width, keyed(options.first), at.node->ops()),
        back(options.width,
             {.data = Carried::activation_gradient, .compressor = options.gradient_compressor},
             at.node->ops()),
        exact(is_exact(*make_encoder(keyed(options.compressor), options.width))),
        memory(options.width, checked_keys(options, exact), options.memory, is_end()) {
    const auto batches = static_cast<std::size_t>(options.batches);
    keys.resize(batches);
    under_way.resize(batches);
    came.resize(batches);
    for (std::size_t batch = 0; batch < batches; ++batch) {
      keys[batch].reserve(options.rows);
      came[batch].resize(is_end() ? options.rows * options.width : 0);
    }
    sent.resize(sends() && !exact ? options.rows * options.width : 0);
    sorted.reserve(is_end() ? options.rows * batches : 0);
  }

  bool sends() const { return member.group.position == options.from; }
  bool receives() const { return member.group.position == options.to; }
  bool is_end() const { return sends() || receives(); }
  /// The other end has what the row is a change of.
  bool comes_again(std::uint64_t key) const { return exact || memory.has(key); }
  std::size_t row_bytes(std::uint64_t key) const {
    return comes_again(key) ? later.row_bytes() : first.row_bytes();
  }
  std::size_t longest_row() const {
    return exact ? later.row_bytes() : std::max(later.row_bytes(), first.row_bytes());
  }
  /// The batch's rows, or gradients, that came.
  std::span<float> came_of(std::size_t batch) {
    return std::span(came[batch]).first(keys[batch].size() * options.width);
  }
  /// Row i of a batch under way, as both ends will hold it.
  std::span<float> held_of(std::size_t batch, std::size_t i) {
    return (receives() ? std::span(came[batch]) : std::span(sent))
        .subspan(i * options.width, options.width);
  }
  /// Notes a batch's keys, once they are found to be ones that it can have.
  Status take_keys(std::size_t batch, std::span<const std::uint64_t> given);

  GroupMember member;
  KeyedLinkOptions options;
  RowCodec later;
  RowCodec first;
  RowCodec back;
  bool exact;  ///< rows themselves are sent, and nothing is remembered
  KeyedMemory memory;
  KeyedLinkCounts counts;
  std::vector<std::vector<std::uint64_t>> keys;  ///< keys by batch
  std::vector<bool> under_way;                   ///< batches that were begun and are not there yet
  /// Rows at the receiver, and gradients at the sender, by batch.
  std::vector<std::vector<float>> came;
  std::vector<float> sent;  ///< rows of the batch that the sender encodes, as both ends hold them
  std::vector<std::uint64_t> sorted;  ///< keys of a batch, then the new ones of the others
};

Status KeyedLink::Shared::take_keys(std::size_t batch, std::span<const std::uint64_t> given) {
  check(given.size() <= options.rows, "a batch has at most the link's rows");
  sorted.assign(given.begin(), given.end());
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    return member.node->fault(Fault::unexpected,
                              fmt::format("the key {} stands twice in batch {}; give each row of a "
                                          "batch a key of its own",
                                          *twice, batch));
  }
  // The new keys of batches under way take their room when these are there, each once.
  const auto is_new = [this](std::uint64_t key) { return !comes_again(key); };
  sorted.clear();
  for (std::size_t other = 0; other < keys.size(); ++other) {
    if (under_way[other] && other != batch) {
      std::ranges::copy_if(keys[other], std::back_inserter(sorted), is_new);
    }
  }
  std::ranges::sort(sorted);
  const auto [repeated, end] = std::ranges::unique(sorted);
  sorted.erase(repeated, end);
  std::size_t room = memory.capacity() - memory.size();
  room -= std::min(room, sorted.size());
  for (const std::uint64_t key : given) {
    if (!is_new(key) || std::ranges::binary_search(sorted, key)) {
      continue;
    }
    if (room == 0) {
      return member.node->fault(
          Fault::unexpected,
          fmt::format("the row under key {} finds no room among {} keys; build the link with as "
                      "many keys as a pass over the data has rows, or forget some at both ends",
                      key, memory.capacity()));
    }
    --room;
  }
  keys[batch].assign(given.begin(), given.end());
  under_way[batch] = true;
  return {};
}

/// A batch on its way: rows there, or gradients back.
class KeyedLink::Batch : public OnePhaseCollective {
 public:
  /// A frame from position `from` to position `to`, of at most `most_bytes` of payload, encoded by
  /// `codec`.
  Batch(Shared& shared, std::size_t batch, int from, int to, std::size_t most_bytes,
        const RowCodec& codec)
      : OnePhaseCollective(shared.member, shared.member.group.position == to ? 1 : 0, {most_bytes}),
        shared_(&shared),
        batch_(batch),
        from_position_(from),
        to_position_(to),
        most_bytes_(most_bytes),
        wire_id_(codec.wire_id()),
        to_{member_.edge(to)},
        from_{member_.edge(from)} {}

  /// Starts; `rows` are those that this node sends, if it does.
  void begin(std::span<const float> rows) {
    rows_ = rows;
    begin_exchange();
  }

  int phases() const override { return 1; }
  std::uint64_t parts() const override { return shared_->options.rows; }
  ExchangeVolume volume() const override;
  Status complete(const Exchange& exchange) override;

 protected:
  /// Encodes the rows that are sent.
  virtual Status write(ByteWriter& out) = 0;
  /// Reads what came into the link's came_of.
  virtual Status read(ByteReader& in) = 0;
  /// The frame with this payload is under way, or what it brought has been read.
  virtual void done(std::span<const std::byte> /*payload*/) {}
  Status post() override;

  const std::vector<std::uint64_t>& keys() const { return shared_->keys[batch_]; }
  std::size_t width() const { return shared_->options.width; }
  /// Row i of those that are sent.
  std::span<const float> row_out(std::size_t i) const {
    return rows_.subspan(i * width(), width());
  }
  /// Where row i goes that comes.
  std::span<float> row_in(std::size_t i) const {
    return shared_->came_of(batch_).subspan(i * width(), width());
  }

  Shared* shared_;
  std::size_t batch_;

 private:
  bool sends() const { return position() == from_position_; }
  Status judge();

  int from_position_;
  int to_position_;
  std::size_t most_bytes_;
  std::uint16_t wire_id_;
  std::vector<Edge> to_;
  std::vector<Edge> from_;
  std::span<const float> rows_;
};

ExchangeVolume KeyedLink::Batch::volume() const {
  const EdgeVolume most = {.frames = 1,
                           .elements = shared_->options.rows * width(),
                           .bytes = kFrameHeaderBytes + most_bytes_};
  ExchangeVolume volume;
  if (sends()) {
    volume.sent[group().rank_of(to_position_)] = most;
  } else if (position() == to_position_) {
    volume.received[group().rank_of(from_position_)] = most;
  }
  return volume;
}

Status KeyedLink::Batch::post() {
  ExchangePlan plan = {.tag = tag(0),
                       .compressor = wire_id_,
                       .to = {},
                       .from = {},
                       .elements_out = keys().size() * width(),
                       .elements_in = keys().size() * width()};
  if (!sends()) {
    plan.from = from_;
    mail_.post(plan, 0);
    return {};
  }
  if (Status status = node().require_finite(rows_, "matrix of rows that are sent"); !status.ok()) {
    return status;
  }
  plan.to = to_;
  const auto payload = mail_.outgoing();
  ByteWriter writer(payload);
  if (Status status = write(writer); !status.ok()) {
    return status;
  }
  done(payload.first(writer.position()));
  mail_.post(plan, writer.position());
  return {};
}

Status KeyedLink::Batch::judge() {
  ByteReader reader(mail_.payload(0));
  Status status = read(reader);
  if (status.ok() && !reader.finished()) {
    return {Fault::malformed, fmt::format("a payload of {} bytes is none of {} rows",
                                          mail_.payload(0).size(), keys().size())};
  }
  return status;
}

Status KeyedLink::Batch::complete(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange, [this](std::size_t) { return judge(); });
      !status.ok()) {
    return status;
  }
  if (!sends()) {
    done(mail_.payload(0));
  }
  mail_.close();
  return {};
}

/// A batch of rows on its way there.
class KeyedLink::Rows final : public Batch {
 public:
  Rows(Shared& shared, std::size_t batch)
      : Batch(shared, batch, shared.options.from, shared.options.to,
              sizeof(std::uint64_t) + shared.options.rows * shared.longest_row(), shared.later) {}

  std::string signature() const override {
    const KeyedLinkOptions& options = shared_->options;
    return fmt::format(
        "batch {} of {} of up to {} rows of {} elements under {} keys by {} after {}, back by {}, "
        "from {} to {} of {} of group {}{}",
        batch_, options.batches, options.rows, options.width, options.keys, shared_->later.spec(),
        shared_->first.spec(), shared_->back.spec(), options.from, options.to, members(),
        group().number, options.memory == KeyedForm::fp16 ? ", remembered in fp16" : "");
  }
  void save(ByteBuffer& out) const override {
    if (batch_ == 0) {
      shared_->memory.save(out);
    }
  }
  Status load(ByteReader& in) override { return batch_ == 0 ? shared_->memory.load(in) : Status(); }

 private:
  /// The digest of all before the batch, and of its keys.
  std::uint64_t digest() const {
    return shared_->memory.digest_after(std::as_bytes(std::span(keys())));
  }
  Status write(ByteWriter& out) override;
  Status read(ByteReader& in) override;
  void done(std::span<const std::byte> payload) override;
  /// Encodes row i, and leaves what it is at the other end in held_of.
  Status encode(std::size_t i, std::span<std::byte> out);
};

Status KeyedLink::Rows::write(ByteWriter& out) {
  out.write(digest());
  for (std::size_t i = 0; i < keys().size(); ++i) {
    if (Status status = encode(i, out.reserve(shared_->row_bytes(keys()[i]))); !status.ok()) {
      return status;
    }
  }
  return {};
}

Status KeyedLink::Rows::encode(std::size_t i, std::span<std::byte> out) {
  const auto row = row_out(i);
  if (shared_->exact) {
    saturated_ += shared_->later.encode(row, key(i), out);
    return {};
  }
  const auto made = shared_->held_of(batch_, i);
  const auto held = shared_->memory.row(keys()[i]);
  if (held.empty()) {
    saturated_ += shared_->first.encode(row, key(i), out);
    Status status = node().here(shared_->first.decode(out, made, false));
    saturated_ += shared_->memory.round(made);
    return status;
  }
  node().ops().subtract(row, held, made);
  if (Status status = node().require_finite(made, "change of a row that is sent"); !status.ok()) {
    return status;
  }
  saturated_ += shared_->later.encode(made, key(i), out);
  std::ranges::copy(held, made.begin());
  if (Status status = shared_->later.decode(out, made, true); !status.ok()) {
    return node().here(status);
  }
  if (Status status = node().require_finite(made, "row that both ends hold"); !status.ok()) {
    return status;
  }
  saturated_ += shared_->memory.round(made);
  return {};
}

Status KeyedLink::Rows::read(ByteReader& in) {
  if (in.read<std::uint64_t>() != digest()) {
    return {Fault::unexpected,
            "it comes of other keys, or another memory of rows, than this node has; give both ends "
            "the same keys in the same order, and checkpoints of the same round"};
  }
  for (std::size_t i = 0; i < keys().size(); ++i) {
    const auto held = shared_->memory.row(keys()[i]);
    const auto bytes = in.take(shared_->row_bytes(keys()[i]));
    if (in.failed()) {
      return {};
    }
    std::ranges::copy(held, row_in(i).begin());
    const RowCodec& codec = shared_->exact || !held.empty() ? shared_->later : shared_->first;
    if (Status status = codec.decode(bytes, row_in(i), !held.empty()); !status.ok()) {
      return status;
    }
    if (node().ops().count_non_finite(row_in(i)).count > 0) {
      return {Fault::non_finite, fmt::format("row {} is not finite with its change", i)};
    }
    if (!shared_->exact) {
      (void)shared_->memory.round(row_in(i));  // the sender counts what is cut
    }
  }
  return {};
}

void KeyedLink::Rows::done(std::span<const std::byte> payload) {
  const std::uint64_t with_keys = digest();
  for (std::size_t i = 0; i < keys().size(); ++i) {
    ++(shared_->comes_again(keys()[i]) ? shared_->counts.again : shared_->counts.first);
    if (!shared_->exact) {
      shared_->memory.put(keys()[i], shared_->held_of(batch_, i));
    }
  }
  shared_->under_way[batch_] = false;
  shared_->memory.set_digest(with_keys);
  shared_->memory.set_digest(shared_->memory.digest_after(payload));
}

/// The gradients of a batch on their way back.
class KeyedLink::Gradients final : public Batch {
 public:
  Gradients(Shared& shared, std::size_t batch)
      : Batch(shared, batch, shared.options.to, shared.options.from,
              shared.options.rows * shared.back.row_bytes(), shared.back) {}

  std::string signature() const override {
    return fmt::format("gradients of batch {} by {} from {} to {} of group {}", batch_,
                       shared_->back.spec(), shared_->options.to, shared_->options.from,
                       group().number);
  }

 private:
  Status write(ByteWriter& out) override {
    for (std::size_t i = 0; i < keys().size(); ++i) {
      saturated_ +=
          shared_->back.encode(row_out(i), key(i), out.reserve(shared_->back.row_bytes()));
    }
    return {};
  }
  Status read(ByteReader& in) override {
    Status status;
    for (std::size_t i = 0; status.ok() && i < keys().size(); ++i) {
      const auto bytes = in.take(shared_->back.row_bytes());
      if (in.failed()) {
        break;
      }
      status = shared_->back.decode(bytes, row_in(i), false);
    }
    return status;
  }
};

KeyedLink::KeyedLink(const GroupMember& member, const KeyedLinkOptions& options)
    : shared_(std::make_unique<Shared>(member, options)) {
  for (int batch = 0; batch < options.batches; ++batch) {
    there_.push_back(std::make_unique<Rows>(*shared_, static_cast<std::size_t>(batch)));
    back_.push_back(std::make_unique<Gradients>(*shared_, static_cast<std::size_t>(batch)));
  }
}

KeyedLink::~KeyedLink() = default;

const KeyedLinkOptions& KeyedLink::options() const { return shared_->options; }
bool KeyedLink::sends() const { return shared_->sends(); }
bool KeyedLink::receives() const { return shared_->receives(); }

Status KeyedLink::send(int batch, std::span<const std::uint64_t> keys,
                       std::span<const float> rows) {
  const auto at = static_cast<std::size_t>(batch);
  check(sends(), "the member at the link's beginning sends rows");
  check(rows.size() == keys.size() * shared_->options.width, "a key has a row");
  Status status = shared_->take_keys(at, keys);
  if (status.ok()) {
    there_.at(at)->begin(rows);
  }
  return status;
}

Status KeyedLink::receive(int batch, std::span<const std::uint64_t> keys) {
  const auto at = static_cast<std::size_t>(batch);
  check(receives(), "the member at the link's end gets rows");
  Status status = shared_->take_keys(at, keys);
  if (status.ok()) {
    there_.at(at)->begin({});
  }
  return status;
}

Collective& KeyedLink::carrying(int batch) { return *there_.at(static_cast<std::size_t>(batch)); }

std::span<const float> KeyedLink::rows(int batch) const {
  check(receives(), "the member at the link's end has rows that came");
  return shared_->came_of(static_cast<std::size_t>(batch));
}

void KeyedLink::send_gradient(int batch, std::span<const float> gradient) {
  check(gradient.size() == rows(batch).size(), "a row has a gradient");
  back_.at(static_cast<std::size_t>(batch))->begin(gradient);
}

void KeyedLink::receive_gradient(int batch) {
  check(sends(), "the member at the link's beginning gets gradients");
  back_.at(static_cast<std::size_t>(batch))->begin({});
}

Collective& KeyedLink::returning(int batch) { return *back_.at(static_cast<std::size_t>(batch)); }

std::span<const float> KeyedLink::gradient(int batch) const {
  check(sends(), "the member at the link's beginning has gradients that came");
  return shared_->came_of(static_cast<std::size_t>(batch));
}

EdgeVolume KeyedLink::volume_there(std::size_t first, std::size_t again) const {
  return {.frames = 1,
          .elements = (first + again) * shared_->options.width,
          .bytes = kFrameHeaderBytes + sizeof(std::uint64_t) +
                   (shared_->exact
                        ? (first + again) * shared_->later.row_bytes()
                        : first * shared_->first.row_bytes() + again * shared_->later.row_bytes())};
}

EdgeVolume KeyedLink::volume_back(std::size_t rows) const {
  return {.frames = 1,
          .elements = rows * shared_->options.width,
          .bytes = kFrameHeaderBytes + rows * shared_->back.row_bytes()};
}

KeyedLinkCounts KeyedLink::counts() const { return shared_->counts; }

std::span<const float> KeyedLink::remembered(std::uint64_t key) const {
  return shared_->memory.row(key);
}

std::uint64_t KeyedLink::digest() const { return shared_->memory.digest(); }

void KeyedLink::forget(std::span<const std::uint64_t> keys) {
  if (sends() || receives()) {
    shared_->memory.forget(keys);
  }
}

void KeyedLink::save(ByteBuffer& out) const { shared_->memory.save(out); }

Status KeyedLink::load(ByteReader& in) { return shared_->memory.load(in); }

}  // namespace sotto
