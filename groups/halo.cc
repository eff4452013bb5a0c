#include <sotto/groups/halo.h>

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/xxh3.h>

namespace sotto {
namespace {

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

/// A room for each neighbour, as long at all members.
std::vector<std::size_t> rooms_for(const GroupMember& member, const HaloLists& lists,
                                   std::size_t width, const Encoding& encoding) {
  const std::size_t row = RowCodec(width, encoding, member.node->ops()).row_bytes();
  const std::size_t longest = lists.longest;
  return std::vector<std::size_t>(std::max<std::size_t>(1, lists.out.size()),
                                  (longest + 7) / 8 + longest * row);
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
           Merge merge)
    : OnePhaseCollective(member, lists.in.size(), rooms_for(member, lists, width, encoding)),
      lists_(std::move(lists)),
      merge_(merge),
      codec_(width, encoding, node().ops()),
      parcels_(lists_.out.size()),
      tried_(width) {
  refuse_keyed(encoding);
  check_lists(lists_.out, group(), lists_.longest);
  check_lists(lists_.in, group(), lists_.longest);
  for (const HaloEdge& edge : lists_.out) {
    to_edges_.push_back(member_.edge(edge.position));
  }
  for (const HaloEdge& edge : lists_.in) {
    from_edges_.push_back(member_.edge(edge.position));
    elements_in_.push_back(edge.rows.size() * width);
  }
}

std::string Halo::signature() const {
  return fmt::format("halo {:016x} of up to {} rows of {} elements by {}, {}, among {} of group {}",
                     lists_.digest, lists_.longest, width(), codec_.spec(),
                     merge_ == Merge::add ? "added" : "replaced", members(), group().number);
}

std::uint64_t Halo::parts() const { return static_cast<std::uint64_t>(members()) * lists_.longest; }

ExchangeVolume Halo::volume() const {
  ExchangeVolume volume;
  const auto edge_volume = [this](const HaloEdge& edge) {
    const std::size_t rows = edge.rows.size();
    return EdgeVolume{.frames = 1,
                      .elements = rows * width(),
                      .bytes = kFrameHeaderBytes + bitmap_bytes(rows) + rows * codec_.row_bytes()};
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

Parcel Halo::encode(const HaloEdge& edge, std::uint64_t first_key, std::span<std::byte> out) {
  ByteWriter writer(out);
  const auto bitmap = writer.reserve(bitmap_bytes(edge.rows.size()));
  std::ranges::fill(bitmap, std::byte{0});
  std::size_t sent = 0;
  for (std::size_t i = 0; i < edge.rows.size(); ++i) {
    if (!changed_.empty() && changed_[edge.rows[i]] == 0) {
      continue;
    }
    bitmap[i / 8] |= std::byte{1} << (i % 8);
    saturated_ += codec_.encode(from_.subspan(edge.rows[i] * width(), width()), key(first_key + i),
                                writer.reserve(codec_.row_bytes()));
    ++sent;
  }
  return {.elements = sent * width(), .payload_bytes = writer.position()};
}

Status Halo::post() {
  if (Status status = node().require_finite(from_, "matrix of rows that are sent"); !status.ok()) {
    return status;
  }
  for (std::size_t i = 0; i < lists_.out.size(); ++i) {
    const auto first_key = static_cast<std::uint64_t>(lists_.out[i].position) * lists_.longest;
    parcels_[i] = encode(lists_.out[i], first_key, mail_.outgoing(i));
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

Status Halo::judge(std::size_t edge) {
  const auto payload = mail_.payload(edge);
  const std::size_t listed = lists_.in[edge].rows.size();
  ByteReader reader(payload);
  const auto bitmap = reader.take(bitmap_bytes(listed));
  std::size_t rows = 0;
  for (std::size_t i = 0; !reader.failed() && i < 8 * bitmap.size(); ++i) {
    if (bit(bitmap, i) && i >= listed) {
      return {Fault::malformed, fmt::format("it has row {} where {} are agreed", i, listed)};
    }
    rows += bit(bitmap, i) ? 1U : 0U;
  }
  if (reader.failed() || reader.remaining() != rows * codec_.row_bytes()) {
    return {Fault::malformed, fmt::format("{} bytes for {} of {} rows of {} bytes", payload.size(),
                                          rows, listed, codec_.row_bytes())};
  }
  Status status;
  while (status.ok() && reader.remaining() > 0) {
    status = codec_.decode(reader.take(codec_.row_bytes()), tried_, false);
  }
  return status;
}

Status Halo::take(const HaloEdge& edge, std::span<const std::byte> payload) {
  ByteReader reader(payload);
  const auto bitmap = reader.take(bitmap_bytes(edge.rows.size()));
  for (std::size_t i = 0; i < edge.rows.size(); ++i) {
    if (bit(bitmap, i)) {
      const auto row = reader.take(codec_.row_bytes());
      if (Status status = codec_.decode(row, row_of(edge.rows[i]), merge_ == Merge::add);
          !status.ok()) {
        return status;
      }
    }
  }
  return {};
}

Status Halo::complete(const Exchange& exchange) {
  // Every row is tried before any is added.
  const auto judge_edge = [this](std::size_t edge) { return judge(edge); };
  if (Status status = mail_.accept(exchange, judge_edge); !status.ok()) {
    return status;
  }
  for (std::size_t edge = 0; edge < lists_.in.size(); ++edge) {
    if (Status status = take(lists_.in[edge], mail_.payload(edge)); !status.ok()) {
      return mail_.refuse(edge, status);
    }
  }
  mail_.close();
  return {};
}

}  // namespace sotto
