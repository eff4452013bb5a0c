#include <sotto/groups/halo.h>

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/xxh3.h>

namespace sotto {
namespace {

/// Takes back what KeyedMemory::save wrote of `rows` rows, whose keys are their places in a list.
Status load_held(ByteReader& in, std::size_t rows, KeyedMemory& held) {
  Status status = held.load(in);
  std::size_t known = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    known += std::size_t{held.has(i)};
  }
  const bool of_list = !status.ok() || known == held.size();
  return of_list ? status : Status(Fault::malformed, "held rows of a halo are none of its lists");
}

void check_lists(const std::vector<HaloEdge>& edges, const Group& group, std::size_t longest) {
  int last = -1;
  for (const HaloEdge& edge : edges) {
    if (edge.position <= last || edge.position >= group.size() || edge.position == group.position ||
        edge.rows.empty() || edge.rows.size() > longest) {
      refuse("rows", fmt::format("{} to member {}", edge.rows.size(), edge.position),
             fmt::format("name other members of the {} in ascending order, each with 1 to {} rows",
                         group.size(), longest));
    }
    last = edge.position;
  }
}

/// Whether both ends hold rows that go by this encoding.
bool holds_rows(const Encoding& encoding, std::size_t width) {
  return encoding.memory == ErrorMemory::keyed && !is_exact(*make_encoder(encoding, width));
}

/// The encoding of rows that go for the first time.
Encoding first_of(const Encoding& encoding, const std::string& first) {
  return {.data = encoding.data, .memory = encoding.memory, .compressor = first};
}

/// A room for each neighbour, as long at all members.
std::vector<std::size_t> rooms_for(const GroupMember& member, const HaloLists& lists,
                                   std::size_t width, const Encoding& encoding,
                                   const std::string& first) {
  const Ops& ops = member.node->ops();
  std::size_t row = RowCodec(width, encoding, ops).row_bytes();
  std::size_t front = 0;
  if (holds_rows(encoding, width)) {
    row = std::max(row, RowCodec(width, first_of(encoding, first), ops).row_bytes());
    front = sizeof(std::uint64_t);
  }
  const std::size_t longest = lists.longest;
  return std::vector<std::size_t>(std::max<std::size_t>(1, lists.out.size()),
                                  front + (longest + 7) / 8 + longest * row);
}

/// A memory for the rows of each edge.
std::vector<KeyedMemory> memories_for(const std::vector<HaloEdge>& edges, std::size_t width) {
  std::vector<KeyedMemory> memories;
  memories.reserve(edges.size());
  for (const HaloEdge& edge : edges) {
    memories.emplace_back(width, edge.rows.size());
  }
  return memories;
}

bool bit(std::span<const std::byte> bitmap, std::size_t at) {
  return ((std::to_integer<unsigned>(bitmap[at / 8]) >> (at % 8)) & 1U) != 0;
}

}  // namespace

std::vector<GraphEdge> sorted_edges(std::span<const GraphEdge> edges) {
  std::vector<GraphEdge> sorted(edges.begin(), edges.end());
  for (auto& [a, b] : sorted) {
    if (a > b) {
      std::swap(a, b);
    }
  }
  std::ranges::sort(sorted);
  return sorted;
}

GraphPart graph_part(std::span<const GraphEdge> edges, std::span<const int> owner, int members,
                     int position) {
  for (const int member : owner) {
    if (member < 0 || member >= members) {
      refuse("owner", fmt::format("{}", member), fmt::format("members are 0 to {}", members - 1));
    }
  }
  // Boundary nodes of a member that a second one needs.
  std::map<std::pair<int, int>, std::set<std::uint32_t>> needed;
  for (const auto& [a, b] : edges) {
    if (a >= owner.size() || b >= owner.size()) {
      refuse("edges", fmt::format("{}-{}", a, b),
             fmt::format("the graph has the nodes 0 to {}", owner.size() - 1));
    }
    if (owner[a] != owner[b]) {
      needed[{owner[a], owner[b]}].insert(a);
      needed[{owner[b], owner[a]}].insert(b);
    }
  }
  GraphPart part;
  ByteBuffer all;  // what every member knows alike
  for (const auto& [pair, nodes] : needed) {
    all.write(pair.first);
    all.write(pair.second);
    for (const std::uint32_t node : nodes) {
      all.write(node);
    }
  }
  all.write_span(owner);
  part.lists.digest = xxh3(all.bytes());
  std::map<std::uint32_t, std::uint32_t> row_of;
  for (std::uint32_t node = 0; node < owner.size(); ++node) {
    if (owner[node] == position) {
      row_of[node] = static_cast<std::uint32_t>(part.own.size());
      part.own.push_back(node);
    }
  }
  for (const auto& [pair, nodes] : needed) {
    part.lists.longest = std::max(part.lists.longest, nodes.size());
    HaloEdge edge;
    if (pair.first == position) {
      edge.position = pair.second;
      for (const std::uint32_t node : nodes) {
        edge.rows.push_back(row_of.at(node));
      }
      part.lists.out.push_back(std::move(edge));
    } else if (pair.second == position) {
      edge.position = pair.first;
      for (const std::uint32_t node : nodes) {
        edge.rows.push_back(static_cast<std::uint32_t>(part.ghosts.size()));
        part.ghosts.push_back(node);
      }
      part.lists.in.push_back(std::move(edge));
    }
  }
  return part;
}

Halo::Halo(GroupMember member, HaloLists lists, std::size_t width, const Encoding& encoding,
           Merge merge, const std::string& first)
    : OnePhaseCollective(member, lists.in.size(), rooms_for(member, lists, width, encoding, first)),
      lists_(std::move(lists)),
      merge_(merge),
      codec_(width, encoding, node().ops()),
      parcels_(lists_.out.size()),
      tried_(width) {
  if (merge == Merge::add) {
    refuse_keyed(encoding);
  }
  check_lists(lists_.out, group(), lists_.longest);
  check_lists(lists_.in, group(), lists_.longest);
  if (holds_rows(encoding, width)) {
    first_.emplace(width, first_of(encoding, first), node().ops());
    held_out_ = memories_for(lists_.out, width);
    held_in_ = memories_for(lists_.in, width);
  }
  for (const HaloEdge& edge : lists_.out) {
    to_edges_.push_back(member_.edge(edge.position));
  }
  for (const HaloEdge& edge : lists_.in) {
    from_edges_.push_back(member_.edge(edge.position));
    elements_in_.push_back(edge.rows.size() * width);
  }
}

std::string Halo::signature() const {
  return fmt::format(
      "halo {:016x} of up to {} rows of {} elements by {}, {}, among {} of group {}{}",
      lists_.digest, lists_.longest, width(), codec_.spec(),
      merge_ == Merge::add ? "added" : "replaced", members(), group().number,
      keyed() ? fmt::format(", as changes of rows that went by {} first", first_->spec()) : "");
}

std::uint64_t Halo::parts() const { return static_cast<std::uint64_t>(members()) * lists_.longest; }

ExchangeVolume Halo::volume() const {
  ExchangeVolume volume;
  const auto edge_volume = [this](const HaloEdge& edge) {
    const std::size_t rows = edge.rows.size();
    return EdgeVolume{
        .frames = 1,
        .elements = rows * width(),
        .bytes = kFrameHeaderBytes + digest_bytes() + bitmap_bytes(rows) + rows * longest_row()};
  };
  for (const HaloEdge& edge : lists_.out) {
    volume.sent[group().rank_of(edge.position)] = edge_volume(edge);
  }
  for (const HaloEdge& edge : lists_.in) {
    volume.received[group().rank_of(edge.position)] = edge_volume(edge);
  }
  return volume;
}

void Halo::begin(std::span<const float> from, std::span<float> to,
                 std::span<const std::uint8_t> changed) {
  check(!busy(), "a collective does one thing at a time");
  const auto covers = [this](const std::vector<HaloEdge>& edges, std::size_t elements) {
    return std::ranges::all_of(edges, [&](const HaloEdge& edge) {
      return (std::size_t{std::ranges::max(edge.rows)} + 1) * width() <= elements;
    });
  };
  check(covers(lists_.out, from.size()) && covers(lists_.in, to.size()),
        "matrices have all rows of the lists");
  check(changed.empty() || changed.size() * width() == from.size(), "a row has one flag");
  from_ = from;
  to_ = to;
  changed_ = changed;
  if (!lists_.out.empty() || !lists_.in.empty()) {
    begin_exchange();
  }
}

Status Halo::encode_change(KeyedMemory& held, std::size_t i, std::span<const float> row,
                           const RandomKey& noise, ByteWriter& out) {
  const auto before = held.row(i);
  if (before.empty()) {
    const auto bytes = out.reserve(first_->row_bytes());
    saturated_ += first_->encode(row, noise, bytes);
    if (Status status = node().here(first_->decode(bytes, tried_, false)); !status.ok()) {
      return status;
    }
  } else {
    node().ops().subtract(row, before, tried_);
    if (Status status = node().require_finite(tried_, "change of a row that is sent");
        !status.ok()) {
      return status;
    }
    const auto bytes = out.reserve(codec_.row_bytes());
    saturated_ += codec_.encode(tried_, noise, bytes);
    std::ranges::copy(before, tried_.begin());
    if (Status status = node().here(codec_.decode(bytes, tried_, true)); !status.ok()) {
      return status;
    }
  }
  if (Status status = node().require_finite(tried_, "row that both ends hold"); !status.ok()) {
    return status;
  }
  held.put(i, tried_);
  return {};
}

Result<Parcel> Halo::encode(std::size_t edge, std::span<std::byte> out) {
  const HaloEdge& listed = lists_.out[edge];
  const auto first_key = static_cast<std::uint64_t>(listed.position) * lists_.longest;
  ByteWriter writer(out);
  if (keyed()) {
    writer.write(held_out_[edge].digest());
  }
  const auto bitmap = writer.reserve(bitmap_bytes(listed.rows.size()));
  std::ranges::fill(bitmap, std::byte{0});
  std::size_t sent = 0;
  for (std::size_t i = 0; i < listed.rows.size(); ++i) {
    if (!changed_.empty() && changed_[listed.rows[i]] == 0) {
      continue;
    }
    bitmap[i / 8] |= std::byte{1} << (i % 8);
    ++sent;
    const auto row = from_.subspan(listed.rows[i] * width(), width());
    if (!keyed()) {
      saturated_ += codec_.encode(row, key(first_key + i), writer.reserve(codec_.row_bytes()));
    } else if (Status status = encode_change(held_out_[edge], i, row, key(first_key + i), writer);
               !status.ok()) {
      return status;
    }
  }
  if (keyed()) {
    KeyedMemory& held = held_out_[edge];
    held.set_digest(held.digest_after(out.first(writer.position())));
  }
  return Parcel{.elements = sent * width(), .payload_bytes = writer.position()};
}

Status Halo::post() {
  if (Status status = node().require_finite(from_, "matrix of rows that are sent"); !status.ok()) {
    return status;
  }
  for (std::size_t i = 0; i < lists_.out.size(); ++i) {
    const auto parcel = encode(i, mail_.outgoing(i));
    if (!parcel.ok()) {
      return parcel.status();
    }
    parcels_[i] = *parcel;
  }
  mail_.post_each({.tag = tag(0),
                   .compressor = codec_.wire_id(),
                   .to = to_edges_,
                   .from = from_edges_,
                   .elements_out = 0,
                   .elements_in = 0,
                   .elements_by_sender = elements_in_,
                   .at_most = true},
                  parcels_);
  return {};
}

Status Halo::read_row(std::size_t edge, std::size_t i, ByteReader& in, std::span<float> row,
                      bool adds) {
  const auto bytes = in.take(bytes_of(edge, i));
  if (!keyed()) {
    return codec_.decode(bytes, row, adds);
  }
  const auto before = held_in_[edge].row(i);
  std::ranges::copy(before, row.begin());
  const RowCodec& codec = before.empty() ? *first_ : codec_;
  Status status = codec.decode(bytes, row, !before.empty());
  if (status.ok() && node().ops().count_non_finite(row).count > 0) {
    return {Fault::non_finite, fmt::format("row {} is not finite with its change", i)};
  }
  return status;
}

Status Halo::judge(std::size_t edge) {
  const auto payload = mail_.payload(edge);
  const std::size_t listed = lists_.in[edge].rows.size();
  ByteReader reader(payload);
  if (keyed() && reader.read<std::uint64_t>() != held_in_[edge].digest()) {
    return {Fault::unexpected,
            "it comes of other rows than this node holds; give both ends checkpoints of the same "
            "round"};
  }
  const auto bitmap = reader.take(bitmap_bytes(listed));
  std::size_t rows = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; !reader.failed() && i < 8 * bitmap.size(); ++i) {
    if (!bit(bitmap, i)) {
      continue;
    }
    if (i >= listed) {
      return {Fault::malformed, fmt::format("it has row {} where {} are agreed", i, listed)};
    }
    ++rows;
    bytes += bytes_of(edge, i);
  }
  if (reader.failed() || reader.remaining() != bytes) {
    return {Fault::malformed, fmt::format("{} bytes for {} of {} rows, which take {}",
                                          payload.size(), rows, listed, bytes)};
  }
  Status status;
  for (std::size_t i = 0; status.ok() && i < listed; ++i) {
    if (bit(bitmap, i)) {
      status = read_row(edge, i, reader, tried_, false);
    }
  }
  return status;
}

Status Halo::take(std::size_t edge, std::span<const std::byte> payload) {
  const std::vector<std::uint32_t>& rows = lists_.in[edge].rows;
  ByteReader reader(payload.subspan(digest_bytes()));
  const auto bitmap = reader.take(bitmap_bytes(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!bit(bitmap, i)) {
      continue;
    }
    const auto row = row_of(rows[i]);
    if (Status status = read_row(edge, i, reader, row, merge_ == Merge::add); !status.ok()) {
      return status;
    }
    if (keyed()) {
      held_in_[edge].put(i, row);
    }
  }
  if (keyed()) {
    held_in_[edge].set_digest(held_in_[edge].digest_after(payload));
  }
  return {};
}

void Halo::save(ByteBuffer& out) const {
  for (const auto* edges : {&held_out_, &held_in_}) {
    for (const KeyedMemory& held : *edges) {
      held.save(out);
    }
  }
}

Status Halo::load(ByteReader& in) {
  Status status;
  for (std::size_t edge = 0; status.ok() && edge < held_out_.size(); ++edge) {
    status = load_held(in, lists_.out[edge].rows.size(), held_out_[edge]);
  }
  for (std::size_t edge = 0; status.ok() && edge < held_in_.size(); ++edge) {
    status = load_held(in, lists_.in[edge].rows.size(), held_in_[edge]);
  }
  return status;
}

Status Halo::complete(const Exchange& exchange) {
  // Every row is tried before any is added.
  const auto judge_edge = [this](std::size_t edge) { return judge(edge); };
  if (Status status = mail_.accept(exchange, judge_edge); !status.ok()) {
    return status;
  }
  for (std::size_t edge = 0; edge < lists_.in.size(); ++edge) {
    if (Status status = take(edge, mail_.payload(edge)); !status.ok()) {
      return mail_.refuse(edge, status);
    }
  }
  mail_.close();
  return {};
}

}  // namespace sotto
