// Halo exchange: members of a group hold parts of one graph, and send each other the rows of
// boundary nodes, or add up what others have for these rows.
//
// Which rows go to whom is fixed when the object is made, at both ends. A round may leave rows out:
// a frame says which of the agreed rows follow.
//
// With ErrorMemory::keyed both ends of an edge hold each row as it went last, m, under its place in
// the edge's list, as a KeyedLink does under keys (keyed_link.h): the first time a row goes by the
// compressor `first`, later C(row - m) goes, and both add it to m, which is the row that is
// written. Rows that change little from round to round then go in few bits. With the compressor
// `none` rows themselves go, and nothing is held.
//
// Payload: a bit for each agreed row, from the lowest bit of the first byte on, the last byte
// filled with zeros; then the rows whose bit is 1, in their order, each encoded by itself
// (row_codec.h). Where rows are held, the digest of all that went over the edge before (u64) stands
// in front; an end that holds other rows refuses the frame. Elements in the header: rows that
// follow × width. ExchangeVolume: a frame to each neighbouring part, of 64 + ⌈rows/8⌉ + rows
// |C(width)| bytes at most; where rows are held 8 more, and C is the longer of both encodings.
// Memory of held rows: 4 × width bytes a row of each edge, at both ends; its place in the memory is
// allocated when the row goes for the first time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sotto/groups/collective.h>
#include <sotto/groups/keyed_memory.h>
#include <sotto/groups/row_codec.h>

namespace sotto {

/// Rows between this member and another one, as indices into the matrix of this member.
struct HaloEdge {
  int position = 0;
  std::vector<std::uint32_t> rows;
};

/// What one member sends and receives; each sorted by position, without this member.
struct HaloLists {
  std::vector<HaloEdge> out;  ///< rows of the matrix that is sent from
  std::vector<HaloEdge> in;   ///< rows of the matrix that is written to
  /// Rows of the longest list between any two members: the same at all of them.
  std::size_t longest = 0;
  /// A number that tells sets of lists apart, the same at all members: graph_part digests the graph
  /// and its owners. It is compared between members.
  std::uint64_t digest = 0;

  /// The other direction: what was received is sent back.
  HaloLists reversed() const {
    return {.out = in, .in = out, .longest = longest, .digest = digest};
  }
};

/// An edge of a graph, by the numbers of its ends; the order of these means nothing.
using GraphEdge = std::pair<std::uint32_t, std::uint32_t>;

/// The edges in ascending order, the smaller end of each first.
std::vector<GraphEdge> sorted_edges(std::span<const GraphEdge> edges);

/// One member's part of a graph.
struct GraphPart {
  /// This member's nodes of the graph, ascending: row i of its matrix is node own[i].
  std::vector<std::uint32_t> own;
  /// Nodes of other members that have an edge to one of `own`, by member and then ascending: row i
  /// of its halo is node ghosts[i].
  std::vector<std::uint32_t> ghosts;
  /// Sends rows of `own` and writes rows of `ghosts`.
  HaloLists lists;
};

/// The part of the member at `position` of a graph whose node v belongs to the member owner[v],
/// with undirected edges. Throws Error (field "edges" or "owner") for a node or a member that is
/// none.
GraphPart graph_part(std::span<const GraphEdge> edges, std::span<const int> owner, int members,
                     int position);

class Halo final : public OnePhaseCollective {
 public:
  /// What is done with a row that comes.
  enum class Merge : std::uint8_t {
    replace,  ///< the row takes the place of the one that was there
    add,      ///< the row is added, in the order of positions: gradients on their way to owners
  };

  /// A halo for rows of `width` elements. `first` is the compressor of rows that go for the first
  /// time where the encoding's memory is ErrorMemory::keyed, a contraction or none; else it does
  /// nothing. Throws Error (field "rows") for lists that are not sorted by position or name no
  /// member, (field "compressor") for that memory where rows are added, and as RowCodec.
  Halo(GroupMember member, HaloLists lists, std::size_t width, const Encoding& encoding,
       Merge merge, const std::string& first = "quant:8");

  /// Starts: sends the listed rows of `from`, and takes those that come into `to`. Where `changed`,
  /// a flag for each row of `from`, or empty, is 0, the row is left out, and the other end keeps
  /// what it has. All must stay until the collective is done.
  void begin(std::span<const float> from, std::span<float> to,
             std::span<const std::uint8_t> changed = {});

  std::string signature() const override;
  int phases() const override { return members() > 1 ? 1 : 0; }
  std::uint64_t parts() const override;
  /// What is sent and received where no row is left out; the most of it where rows are held.
  ExchangeVolume volume() const override;
  Status complete(const Exchange& exchange) override;
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

 private:
  static std::size_t bitmap_bytes(std::size_t rows) { return (rows + 7) / 8; }
  /// Both ends hold rows.
  bool keyed() const { return first_.has_value(); }
  std::size_t digest_bytes() const { return keyed() ? sizeof(std::uint64_t) : 0; }
  /// The longest row that may go.
  std::size_t longest_row() const {
    return keyed() ? std::max(codec_.row_bytes(), first_->row_bytes()) : codec_.row_bytes();
  }
  Status post() override;
  /// Encodes what goes along an edge.
  Result<Parcel> encode(std::size_t edge, std::span<std::byte> out);
  /// Encodes row i of an edge as a change of what both ends hold, and holds what it is with that.
  Status encode_change(KeyedMemory& held, std::size_t i, std::span<const float> row,
                       const RandomKey& noise, ByteWriter& out);
  /// Bytes of row i that comes along an edge.
  std::size_t bytes_of(std::size_t edge, std::size_t i) const {
    return keyed() && !held_in_[edge].has(i) ? first_->row_bytes() : codec_.row_bytes();
  }
  /// Reads row i that comes along an edge into `row`, to which it is added if it `adds`.
  Status read_row(std::size_t edge, std::size_t i, ByteReader& in, std::span<float> row, bool adds);
  /// Why the payload that came along `edge` is none of ours; OK if it is.
  Status judge(std::size_t edge);
  Status take(std::size_t edge, std::span<const std::byte> payload);
  std::span<float> row_of(std::uint32_t row) const { return to_.subspan(row * width(), width()); }
  std::size_t width() const { return codec_.width(); }

  HaloLists lists_;
  Merge merge_;
  RowCodec codec_;
  std::optional<RowCodec> first_;      // of rows that go for the first time; none: no row is held
  std::vector<KeyedMemory> held_out_;  // by edge, what the other end holds of rows that went there
  std::vector<KeyedMemory> held_in_;   // by edge, rows that came
  std::vector<Edge> to_edges_;
  std::vector<Edge> from_edges_;
  std::vector<Parcel> parcels_;
  std::vector<std::size_t> elements_in_;
  std::vector<float> tried_;  // room for a row: decoded to see whether it can be, or as it is held
  std::span<const float> from_;
  std::span<float> to_;
  std::span<const std::uint8_t> changed_;
};

}  // namespace sotto
