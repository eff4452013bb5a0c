// A graph network whose graph lies in parts at different nodes, such as people whose ratings of
// each other several sites have. It learns to tell from two people what one's rating of the other
// says. Two graph convolutions (Kipf and Welling, arXiv:1609.02907) make a row of each person, and
// a bilinear form a score of two rows:
//
//   H = relu(Â X W₁),  Z = Â H W₂,  score(u, v) = Σ_i (p_i z_ui + q_i z_vi + r_i z_ui z_vi) + b
//
// Â = D^{-1/2} (A + I) D^{-1/2}, A the edges and D the degrees with loops. The loss is the logistic
// one of the links, each times its weight, divided by the sum of all weights.
//
// Features and the rows made of them stay where their person is, but for those of boundary nodes
// (halo.h): features once, in the first round, and in each round the rows of T = H W₂, of Z and of
// ∂L/∂Z, all of the embedding's width. Â is symmetric, so that ∂L/∂T = Â ∂L/∂Z wants a halo like
// the others and no sums on the way; and a link is reckoned with at both its ends, so that ∂L/∂Z is
// whole where its row is. All sums over neighbours go by number of the graph's node: without
// compression and cache, H, Z and their gradients are for any parts those of the whole graph, to
// the bit, at equal parameters. The gradients of W₁, W₂, p, q, r and b are sums over the parts;
// what a ProgramGradient hands on is this node's summand times the number of nodes.
//
// With `keyed` rows of T and Z go as changes of what was sent last. The rows of boundary nodes are
// then at other members what both ends hold of them, and gradients are taken there. Memory: 4 d
// bytes more for a row of each edge and kind, at both ends.
//
// Where `cache` has an age above 0, rows are left out (halo_cache.h): those of T and Z by the norm
// of the gradient that they had in the round before, those of ∂L/∂Z by their own.
//
// All members know the edges and who owns which node, and the sum of all links' weights, and must
// agree on them; features are known to the owner, a link to the owners of both ends at least.
// **Boundary rows tell the receiver about people of other members**; privacy/ does not cover them.
//
// Volume: 3 frames to each neighbouring part, and one more in the first round. Memory: about (4 d +
// 3 h + f) floats a row of the part, its halo included, and that of a MatrixProduct.
// One thread at a time; allocates only in the constructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/groups/halo.h>
#include <sotto/groups/halo_cache.h>
#include <sotto/groups/program_gradient.h>
#include <sotto/groups/programs/part_matrix.h>
#include <sotto/groups/programs/rated_graph.h>
#include <sotto/kernels/matrix_product.h>

namespace sotto {

/// Sizes of a network, and how rows travel; the same at all nodes.
struct GraphNetworkOptions {
  std::size_t features = 1;                  ///< elements of a node's features, f
  std::size_t hidden = 16;                   ///< elements of a row of H, h
  std::size_t embedding = 8;                 ///< elements of a row of Z, d
  std::string compressor = "none";           ///< compressor of T and Z (Carried::activation)
  std::string gradient_compressor = "none";  ///< compressor of ∂L/∂Z (Carried::activation_gradient)
  HaloCacheOptions cache = {.share = 0.5, .most_age = 0};  ///< by default nothing is left out
  /// Rows of T and Z go as changes of what both ends hold (ErrorMemory::keyed, halo.h), for which
  /// `compressor` may be a contraction of few bits.
  bool keyed = false;
  std::string first = "quant:8";  ///< compressor of rows that go for the first time, where `keyed`

  /// Number of parameters: W₁, W₂ by rows, p, q, r, b.
  std::size_t parameters() const { return (features + embedding) * hidden + 3 * embedding + 1; }
};

class GraphNetwork final : public GradientProgram {
 public:
  /// The member's part of a network on `graph`, all of whose nodes are one group. Throws Error
  /// (fields "features", "hidden", "embedding", "parameters", "links" and "total_weight") for what
  /// does not fit, and as graph_part, PartMatrix, Halo and HaloCache. The graph may go afterwards.
  GraphNetwork(const ProgramNode& node, const RatedGraph& graph,
               const GraphNetworkOptions& options);

  std::span<const ProgramStage> stages() const override { return stages_; }
  std::span<const float> gradient() const override { return gradient_; }
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

  /// This member's share of the loss at the last round's beginning; the shares' sum is the loss.
  double loss() const { return loss_; }
  /// Rows of Z of the last round: this member's nodes in ascending order, embedding() elements
  /// each.
  std::span<const float> embeddings() const { return own(z_.rows, options_.embedding); }
  /// ∂L/∂Z of these rows.
  std::span<const float> embedding_gradient() const { return own(dz_.rows, options_.embedding); }
  /// The score that rows of two nodes have, above 0 for positive.
  double score(std::span<const float> from, std::span<const float> to) const;
  /// Boundary rows that were sent, of all three kinds, so far.
  std::uint64_t rows_sent() const;
  /// Boundary rows that were left out so far.
  std::uint64_t rows_kept() const;

 private:
  /// A link, an end of which is an own node.
  struct OwnLink {
    std::uint32_t from;  ///< row
    std::uint32_t to;    ///< row
    bool positive;
    float weight;  ///< share in the sum of all weights
  };
  /// Rows of own nodes and ghosts, and what carries those of boundary nodes to other members.
  struct SharedRows {
    SharedRows(const ProgramNode& node, const GraphPart& part, const Encoding& encoding,
               const GraphNetworkOptions& options);

    Halo halo;
    HaloCache cache;
    std::vector<float> rows;
  };
  /// Parameters by their names.
  struct Weights {
    std::span<float> w1, w2, p, q, r, b;
  };

  template <typename T>
  std::span<T> own(std::span<T> rows, std::size_t width) const {
    return rows.first(part_.own.size() * width);
  }
  std::span<const float> own(const std::vector<float>& rows, std::size_t width) const {
    return own(std::span(rows), width);
  }
  std::span<float> ghosts(std::vector<float>& rows, std::size_t width) const {
    return std::span(rows).subspan(part_.own.size() * width);
  }
  Weights weights(std::span<float> all) const;
  void find_links(const RatedGraph& graph, double total);
  void add_stages();
  /// Begins to send own rows, chosen by their gradients' norms, and to take those of the halo.
  void exchange(SharedRows& shared, std::span<const float> norms) const;
  void make_hidden();
  void make_embeddings();
  void compare();
  void learn();

  GraphNetworkOptions options_;
  GraphPart part_;
  PartMatrix matrix_;  // Â
  MatrixProduct product_;
  std::span<float> x_;  // parameters
  int members_;
  Halo features_halo_;
  SharedRows t_;
  SharedRows z_;
  SharedRows dz_;
  std::vector<OwnLink> links_;
  bool met_ = false;  // the features of the halo are there
  std::vector<float> features_;
  std::vector<float> ax_;      // Â X, own rows
  std::vector<float> h_;       // own rows
  std::vector<float> dt_;      // own rows
  std::vector<float> dh_;      // own rows
  std::vector<float> t_norm_;  // norms of dt_, by own row
  std::vector<float> z_norm_;  // norms of dz_, by own row
  std::vector<float> gradient_;
  double loss_ = 0;
  std::vector<ProgramStage> stages_;
};

}  // namespace sotto
