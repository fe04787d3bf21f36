// A fake of the part of CANN's interface that the operators' host parts use, so that they compile and run
// without CANN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace ge {
enum graphStatus : uint32_t { GRAPH_SUCCESS = 0, GRAPH_FAILED = 0xFFFFFFFF };
enum DataType { DT_FLOAT16, DT_INT8, DT_INT32, DT_UINT8, DT_INT64, DT_BF16 };
enum Format { FORMAT_ND };
} // namespace ge

namespace gert {
class Shape {
public:
    Shape() = default;
    Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
    size_t GetDimNum() const { return dims_.size(); }
    int64_t GetDim(size_t i) const { return dims_[i]; }

private:
    std::vector<int64_t> dims_;
};

class StorageShape {
public:
    explicit StorageShape(const Shape &shape) : shape_(shape) {}
    const Shape &GetStorageShape() const { return shape_; }

private:
    Shape shape_;
};

class IntVector {
public:
    explicit IntVector(std::vector<int64_t> all) : all_(std::move(all)) {}
    size_t GetSize() const { return all_.size(); }
    const int64_t *GetData() const { return all_.data(); }

private:
    std::vector<int64_t> all_;
};

// The values of the attributes in order. A number is a list with one element.
class RuntimeAttrs {
public:
    std::vector<IntVector> all;
    const int64_t *GetInt(size_t i) const { return all.at(i).GetData(); }
    const IntVector *GetListInt(size_t i) const { return &all.at(i); }
};

class InferShapeContext {
public:
    std::vector<const Shape *> in;
    std::vector<Shape> out;
    const Shape *GetOptionalInputShape(size_t i) const { return in.at(i); }
    Shape *GetOutputShape(size_t i) { return &out.at(i); }
};

class InferDataTypeContext {
public:
    std::vector<ge::DataType> in, out;
    ge::DataType GetOptionalInputDataType(size_t i) const { return in.at(i); }
    void SetOutputDataType(size_t i, ge::DataType type) { out.at(i) = type; }
};

class TilingData {
public:
    uint8_t bytes[4096] = {};
    size_t size = 0;
    void *GetData() { return bytes; }
    size_t GetCapacity() const { return sizeof(bytes); }
    void SetDataSize(size_t n) { size = n; }
};

class TilingContext {
public:
    std::vector<const StorageShape *> in;
    RuntimeAttrs attrs;
    TilingData tiling;
    uint32_t blocks = 0, schedule = 0;
    uint64_t key = 0;
    size_t workspace = 0;
    const StorageShape *GetOptionalInputShape(size_t i) const { return in.at(i); }
    const RuntimeAttrs *GetAttrs() const { return &attrs; }
    const void *GetPlatformInfo() const { return nullptr; }
    TilingData *GetRawTilingData() { return &tiling; }
    void SetBlockDim(uint32_t n) { blocks = n; }
    void SetTilingKey(uint64_t n) { key = n; }
    void SetScheduleMode(uint32_t mode) { schedule = mode; }
    size_t *GetWorkspaceSizes(size_t) { return &workspace; }
};
} // namespace gert

namespace ops {
enum Option { OPTIONAL, REQUIRED };

class OpParamDef {
public:
    const char *name = "";
    Option option = REQUIRED;
    OpParamDef &ParamType(Option o) { option = o; return *this; }
    OpParamDef &DataType(const std::vector<ge::DataType> &) { return *this; }
    OpParamDef &Format(const std::vector<ge::Format> &) { return *this; }
};

class OpAttrDef {
public:
    const char *name = "";
    OpAttrDef &AttrType(Option) { return *this; }
    OpAttrDef &Int() { return *this; }
    OpAttrDef &Int(int64_t) { return *this; }
    OpAttrDef &ListInt() { return *this; }
};

class OpAICoreDef {
public:
    ge::graphStatus (*tiling)(gert::TilingContext *) = nullptr;
    const char *unit = "";
    OpAICoreDef &SetTiling(ge::graphStatus (*f)(gert::TilingContext *)) { tiling = f; return *this; }
    OpAICoreDef &AddConfig(const char *name) { unit = name; return *this; }
};

class OpDef {
public:
    explicit OpDef(const char *type) : type(type) {}
    OpParamDef &Input(const char *name) { return Add(inputs, name); }
    OpParamDef &Output(const char *name) { return Add(outputs, name); }
    OpAttrDef &Attr(const char *name) { return Add(attrs, name); }
    OpAICoreDef &AICore() { return core; }
    OpDef &SetInferShape(ge::graphStatus (*f)(gert::InferShapeContext *)) { shapes = f; return *this; }
    OpDef &SetInferDataType(ge::graphStatus (*f)(gert::InferDataTypeContext *)) { types = f; return *this; }

    const char *type;
    std::vector<OpParamDef> inputs, outputs;
    std::vector<OpAttrDef> attrs;
    OpAICoreDef core;
    ge::graphStatus (*shapes)(gert::InferShapeContext *) = nullptr;
    ge::graphStatus (*types)(gert::InferDataTypeContext *) = nullptr;

private:
    template <typename T> static T &Add(std::vector<T> &all, const char *name)
    {
        all.emplace_back();
        all.back().name = name;
        return all.back();
    }
};

// Returns all operators that the program links.
inline std::vector<OpDef *> &Registered()
{
    static std::vector<OpDef *> all;
    return all;
}
} // namespace ops

#define OP_ADD(T) static const bool registered##T = (Registered().push_back(new T(#T)), true)
