// The nodes over which a product is cut (programs/grid_product.h), and how each matrix travels
// among them. Values; thread-safe once they are made.
#pragma once

#include <string>

#include <sotto/groups/programs/grid_product.h>
#include <sotto/groups/vector_collective.h>

namespace sotto::internal {

/// A node's groups along the axes of a product; all that is carried among them shares its frames.
struct ProductAxes {
  /// Throws Error (fields "grid" and "axis") as GridProduct.
  ProductAxes(const ProgramNode& node, const GridProductOptions& options);

  GroupMember row;     ///< the nodes that differ in j
  GroupMember column;  ///< those that differ in i
  GroupMember depth;   ///< those that differ in l; the node alone where there is one plane

  int side() const { return row.group.size(); }      ///< q
  int layers() const { return depth.group.size(); }  ///< d
  int i() const { return column.group.position; }
  int j() const { return row.group.position; }
  int l() const { return depth.group.position; }
};

/// The longest that X, W and Y are at any node, as wholes and in the blocks that travel alone.
struct ProductBounds {
  VectorBound input;
  VectorBound weight;
  VectorBound output;
};

/// The bounds, for initializers. Throws Error (field "grid") for matrices that are too large.
const ProductBounds& fitting(const ProductBounds& bounds, const NodeGrid& grid);

/// How a matrix or a sum travels.
struct ProductWay {
  std::string what;    ///< its name in those of stages
  GroupMember member;  ///< among which nodes
  Encoding encoding;
  VectorBound bound;
};

struct ProductWays {
  ProductWays(const ProductAxes& axes, const GridProductOptions& options,
              const ProductBounds& bounds);

  ProductWay x;
  ProductWay w;
  ProductWay y;
  ProductWay dx;
  ProductWay dw;
  ProductWay dy;
};

}  // namespace sotto::internal
