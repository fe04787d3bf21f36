// Links the host parts of all operators, and prints the declaration of each and the tiling of a launch.
#include "register/op_def_registry.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace {

// k, the ids per row of the launch: the first argument of the program.
int64_t k = 0;

// The launch has 3 requests, 5 rows of ids, 7 states, and KV rows of 1024 + 128 bytes in 2 + 1 chunks. This
// function returns the shape of an input.
gert::Shape ShapeOf(const std::string &name)
{
    if (name == "ids") {
        return {5, k};
    }
    if (name == "block_table") {
        return {3, 40};
    }
    if (name == "tables") {
        return {7, 26656};
    }
    if (name == "slot_blocks") {
        return {7, 64};
    }
    return name == "host_chunks" ? gert::Shape{3} : gert::Shape{3, 1};
}

// Returns the value of an attribute.
std::vector<int64_t> AttrOf(const std::string &name)
{
    if (name == "pool_units") {
        return {4000};
    }
    if (name == "chunks") {
        return {2, 1};
    }
    if (name == "chunk_shift") {
        return {12, 15};
    }
    if (name == "kv_blocks") {
        return {500};
    }
    if (name == "slot_base") {
        return {9};
    }
    return name == "copy_cores" ? std::vector<int64_t>{16} : std::vector<int64_t>{1024, 128};
}

// Returns whether dimensions (-1) and ranks (-2) of inputs that are not known are not known of the outputs either.
bool PassesUnknown(const ops::OpDef &op)
{
    for (const gert::Shape &unknown : {gert::Shape{-1, -1}, gert::Shape{-2}}) {
        gert::InferShapeContext shape;
        shape.in.assign(op.inputs.size(), &unknown);
        shape.out.resize(op.outputs.size());
        if (op.shapes(&shape) != ge::GRAPH_SUCCESS) {
            return false;
        }
        for (const gert::Shape &out : shape.out) {
            bool passes = out.GetDim(0) == unknown.GetDim(0) && (out.GetDim(0) == -1 || out.GetDimNum() == 1);
            for (size_t axis = 1; axis < out.GetDimNum(); axis++) {
                passes &= out.GetDim(axis) == -1 || out.GetDim(axis) > 0;
            }
            if (!passes) {
                std::fprintf(stderr, "%s: an output begins with %lld of an input with %lld\n", op.type,
                             static_cast<long long>(out.GetDim(0)), static_cast<long long>(unknown.GetDim(0)));
                return false;
            }
        }
    }
    return true;
}

// Prints one operator. Returns 0, or 1 if a function of the operator fails, or 2 if it accepts a wrong
// attribute, or 3 if it gives an output a shape that depends on what is not known.
int Print(ops::OpDef &op)
{
    std::printf("%s %s", op.type, op.core.unit);
    std::vector<gert::Shape> shapes;
    for (const auto &input : op.inputs) {
        std::printf(" %s%s", input.name, input.option == ops::REQUIRED ? "" : "?");
        shapes.push_back(ShapeOf(input.name));
    }
    std::printf(" ->");
    gert::InferShapeContext shape;
    gert::InferDataTypeContext types;
    gert::TilingContext tiling;
    std::vector<gert::StorageShape> storage(shapes.begin(), shapes.end());
    for (size_t i = 0; i < shapes.size(); i++) {
        shape.in.push_back(&shapes[i]);
        tiling.in.push_back(&storage[i]);
        types.in.push_back(ge::DT_INT32);
    }
    shape.out.resize(op.outputs.size());
    types.out.resize(op.outputs.size());
    if (op.shapes(&shape) != ge::GRAPH_SUCCESS || op.types(&types) != ge::GRAPH_SUCCESS) {
        return 1;
    }
    for (size_t i = 0; i < op.outputs.size(); i++) {
        std::printf(" %s", op.outputs[i].name);
        for (size_t axis = 0; axis < shape.out[i].GetDimNum(); axis++) {
            std::printf("%c%lld", axis == 0 ? ':' : 'x', static_cast<long long>(shape.out[i].GetDim(axis)));
        }
    }
    for (const auto &attr : op.attrs) {
        tiling.attrs.all.emplace_back(AttrOf(attr.name));
    }
    if (op.core.tiling(&tiling) != ge::GRAPH_SUCCESS) {
        return 1;
    }
    std::printf(" | blocks %u schedule %u workspace %zu tiling", tiling.blocks, tiling.schedule, tiling.workspace);
    for (size_t at = 0; at < tiling.tiling.size; at += 4) {
        int32_t word = 0;
        std::memcpy(&word, tiling.tiling.bytes + at, 4);
        std::printf(" %d", word);
    }
    std::printf("\n");
    // A row that is larger than half of the staging area must be refused, and so must a table without
    // blocks, a base whose indices do not fit int32, and what is right only if its upper half is cut off.
    constexpr int64_t UPPER = int64_t{1} << 32;
    const std::pair<const char *, int64_t> wrong[] = {
        {"bytes", 80000},
        {"bytes", UPPER + 1024},
        {"host_stride", UPPER + 1024},
        {"kv_stride", UPPER + 1024},
        {"fresh_stride", UPPER + 1024},
        {"chunk_shift", UPPER + 12},
        {"pool_units", UPPER + 4000},
        {"pool_units", 0},
        {"kv_blocks", 0},
        {"slot_base", INT32_MAX - 63999},
    };
    for (const auto &[name, value] : wrong) {
        for (size_t i = 0; i < op.attrs.size(); i++) {
            if (std::string(op.attrs[i].name) == name) {
                const auto right = tiling.attrs.all[i];
                tiling.attrs.all[i] = gert::IntVector({value});
                if (op.core.tiling(&tiling) != ge::GRAPH_FAILED) {
                    std::fprintf(stderr, "%s accepts %lld as %s\n", op.type, static_cast<long long>(value), name);
                    return 2;
                }
                tiling.attrs.all[i] = right;
            }
        }
    }
    return PassesUnknown(op) ? 0 : 3;
}

} // namespace

int main(int argc, char **argv)
{
    k = argc > 1 ? std::atoll(argv[1]) : 0;
    int failures = 0;
    for (ops::OpDef *op : ops::Registered()) {
        failures += Print(*op);
    }
    return failures;
}
