#include <sotto/groups/internal/product_stages.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace sotto::internal {

double flops_of(const ProductShape& shape) {
  return 2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.inner) *
         static_cast<double>(shape.columns);
}

ProductStages::ProductStages(LocalNode& node, const GridProductOptions& options)
    : node_(node),
      title_(fmt::format("{} {} x {} x {}", options.name, options.rows, options.inner,
                         options.columns)),
      exchanges_only_(options.exchanges_only),
      broadcast_(options.broadcast) {}

ExchangeVolume ProductStages::volume() const {
  ExchangeVolume sum;
  for (const auto& collective : collectives_) {
    sum += collective->volume();
  }
  return sum;
}

void ProductStages::list_compute(std::string_view what, double flops,
                                 std::function<Status()> compute, Stages& stages) const {
  if (exchanges_only_) {
    compute = [] { return Status(); };
  }
  stages.push_back({fmt::format("{}: {}", title_, what),
                    [run = std::move(compute)](const RoundInput&) { return run(); }, nullptr,
                    flops});
}

void ProductStages::list_check(std::string_view what, std::span<const float> values,
                               std::string_view name, Stages& stages) const {
  list_compute(
      what, 0, [this, values, of = std::string(name)] { return node_.require_finite(values, of); },
      stages);
}

void ProductStages::list_collective(std::string_view what, double flops,
                                    std::function<void()> compute,
                                    std::unique_ptr<VectorCollective> collective,
                                    std::span<float> vector, Stages& stages) {
  VectorCollective* const carried = collective.get();
  collectives_.push_back(std::move(collective));
  stages.push_back({fmt::format("{}: {}", title_, what),
                    [this, run = std::move(compute), carried, vector](const RoundInput&) {
                      if (!exchanges_only_) {
                        run();
                      }
                      carried->begin(vector);
                      return Status();
                    },
                    carried, flops});
}

void ProductStages::list_panel(const ProductWay& way, int l, std::span<const float> own,
                               std::span<float> panel, Stages& stages) {
  const Group& group = way.member.group;
  const bool mine = group.position == l;
  list_collective(
      fmt::format("{} {}", way.what, l), 0,
      [this, mine, own, panel] {
        if (mine) {
          node_.ops().copy(own, panel);
        }
      },
      make_broadcast(way.member,
                     {.elements = panel.size(),
                      .form = broadcast_.value_or(usual_broadcast_form(group.size())),
                      .encoding = way.encoding,
                      .bound = way.bound},
                     l),
      panel, stages);
}

void ProductStages::list_sum(const ProductWay& way, int l, double flops, std::span<float> sum,
                             std::span<float> room,
                             const std::function<void(std::span<float>)>& compute, Stages& stages) {
  const std::span<float> summand = way.member.group.position == l ? sum : room;
  list_collective(
      fmt::format("{} {}", way.what, l), flops, [compute, summand] { compute(summand); },
      make_reduce(way.member,
                  {.elements = room.size(), .encoding = way.encoding, .bound = way.bound}, l),
      summand, stages);
}

void ProductStages::list_gather(const ProductWay& way, std::span<const float> own,
                                std::span<float> block, std::size_t row, Stages& stages) {
  auto gather = make_all_gather(way.member, {.elements = block.size(),
                                             .encoding = way.encoding,
                                             .row = std::max<std::size_t>(1, row),
                                             .bound = way.bound});
  const std::span<float> mine = gather->own_block().of(block);
  list_collective(
      way.what, 0, [this, own, mine] { node_.ops().copy(own, mine); }, std::move(gather), block,
      stages);
}

void ProductStages::list_scatter(const ProductWay& way, double flops, std::function<void()> compute,
                                 std::span<float> block, std::span<float> own, std::size_t row,
                                 Stages& stages) {
  auto scatter = make_reduce_scatter(way.member, {.elements = block.size(),
                                                  .encoding = way.encoding,
                                                  .row = std::max<std::size_t>(1, row),
                                                  .bound = way.bound});
  const std::span<float> mine = scatter->own_block().of(block);
  list_collective(way.what, flops, std::move(compute), std::move(scatter), block, stages);
  list_compute(
      way.what + " taken", 0,
      [this, own, mine, what = way.what] {
        node_.ops().copy(mine, own);
        return node_.require_finite(own, what);
      },
      stages);
}

void ProductStages::list_all_reduce(std::string_view what, const ProductWay& way,
                                    std::span<float> vector, Stages& stages) {
  list_collective(
      what, 0, [] {},
      make_all_reduce(way.member,
                      {.elements = vector.size(), .encoding = way.encoding, .bound = way.bound}),
      vector, stages);
}

}  // namespace sotto::internal
