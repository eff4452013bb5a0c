// Halo exchange: members of a group hold parts of one graph, and send each other the rows of
// boundary nodes, or add up what others have for these rows.
//
// Which rows go to whom is fixed when the object is made, at both ends. A round may leave rows out:
// a frame says which of the agreed rows follow.
//
// Payload: a bit for each agreed row, from the lowest bit of the first byte on, the last byte
// filled with zeros; then the rows whose bit is 1, in their order, each encoded by itself
// (row_codec.h). Elements in the header: rows that follow × width. ExchangeVolume: a frame to each
// neighbouring part, of 64 + ⌈rows/8⌉ + rows |C(width)| bytes at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sotto/groups/collective.h>
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

  /// A halo for rows of `width` elements. Throws Error (field "rows") for lists that are not sorted
  /// by position or name no member, and as RowCodec.
  Halo(GroupMember member, HaloLists lists, std::size_t width, const Encoding& encoding,
       Merge merge);

  /// Starts: sends the listed rows of `from`, and takes those that come into `to`. Where `changed`,
  /// a flag for each row of `from`, or empty, is 0, the row is left out, and the other end keeps
  /// what it has. All must stay until the collective is done.
  void begin(std::span<const float> from, std::span<float> to,
             std::span<const std::uint8_t> changed = {});

  std::string signature() const override;
  int phases() const override { return members() > 1 ? 1 : 0; }
  std::uint64_t parts() const override;
  /// What is sent and received where no row is left out.
  ExchangeVolume volume() const override;
  Status complete(const Exchange& exchange) override;

 private:
  static std::size_t bitmap_bytes(std::size_t rows) { return (rows + 7) / 8; }
  Status post() override;
  Parcel encode(const HaloEdge& edge, std::uint64_t first_key, std::span<std::byte> out);
  /// Why the payload that came along `edge` is none of ours; OK if it is.
  Status judge(std::size_t edge);
  Status take(const HaloEdge& edge, std::span<const std::byte> payload);
  std::span<float> row_of(std::uint32_t row) const { return to_.subspan(row * width(), width()); }
  std::size_t width() const { return codec_.width(); }

  HaloLists lists_;
  Merge merge_;
  RowCodec codec_;
  std::vector<Edge> to_edges_;
  std::vector<Edge> from_edges_;
  std::vector<Parcel> parcels_;
  std::vector<std::size_t> elements_in_;
  std::vector<float> tried_;  // room for a row that is decoded to see whether it can be
  std::span<const float> from_;
  std::span<float> to_;
  std::span<const std::uint8_t> changed_;
};

}  // namespace sotto
